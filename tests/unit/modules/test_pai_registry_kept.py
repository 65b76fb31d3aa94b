"""What the cache has for one upstream comes back as it was, and the pod only where it changed."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.unit.modules.conftest import ModuleFailedError

Run = Callable[..., dict[str, Any]]
NAME = "registry.example.com:5000"
KUBECTL = """#!/bin/sh
echo "$@" >> {folder}/asked
case "$*" in
  *" get "*) cat {folder}/deployment.json ;;
  *undo*) exit {status} ;;
esac
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The folder of a cache with two upstreams."""
    folder = tmp_path / "docker-cache"
    folder.mkdir()
    for name in (f"registry-{NAME}.yml", f"login-{NAME}", "login-quay.io", "front.cfg"):
        (folder / name).write_text(f"old {name}")
        (folder / name).chmod(0o700 if name.startswith("login") else 0o600)
    return folder


@pytest.fixture
def kept(run_module: Run, cache: Path, tmp_path: Path) -> Run:
    """The module, with a stand-in for kubectl."""
    program = tmp_path / "kubectl"

    def run(state: str, revision: str = "3", status: int = 0, *, check: bool = False) -> dict[str, Any]:
        annotations = f'{{"deployment.kubernetes.io/revision": "{revision}"}}'
        found = f'{{"metadata": {{"annotations": {annotations}}}}}' if revision else ""
        (tmp_path / "deployment.json").write_text(found)
        program.write_text(KUBECTL.format(folder=tmp_path, status=status))
        program.chmod(0o755)
        places = {"folder": str(cache), "kept": str(tmp_path / "kept"), "kubectl": str(program)}
        return run_module("pai_registry_kept", check=check, upstream=NAME, state=state, **places)

    return run


def replace(cache: Path) -> None:
    """As a run with another account and an authority does."""
    (cache / f"login-{NAME}").write_text("new")
    (cache / "ca" / NAME).mkdir(parents=True)
    (cache / "ca" / NAME / "ca.pem").write_text("new")
    (cache / "front.cfg").write_text("new")


def test_its_files_come_back_and_no_others(kept: Run, cache: Path, tmp_path: Path) -> None:
    assert kept("keep")["changed"] is False
    assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o700
    replace(cache)
    assert kept("restore")["changed"]
    login = cache / f"login-{NAME}"
    assert (login.read_text(), stat.S_IMODE(login.stat().st_mode)) == (f"old login-{NAME}", 0o700)
    assert not (cache / "ca" / NAME / "ca.pem").exists()
    assert (cache / "front.cfg").read_text() == "new"
    assert not (tmp_path / "kept").exists()
    assert "undo" not in (tmp_path / "asked").read_text(), "a login needs no other pod"


def test_a_pod_that_was_started_for_the_new_ones_is_taken_back(
    kept: Run, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    kept("keep", revision="3")
    kept("restore", revision="4")
    assert (tmp_path / "asked").read_text() == snapshot


def test_a_cache_without_a_pod_keeps_its_files(kept: Run, cache: Path, tmp_path: Path) -> None:
    """kubectl prints nothing for a missing Deployment."""
    kept("keep", revision="")
    replace(cache)
    assert kept("restore", revision="")["changed"]


def test_a_pod_that_stays_is_told_and_the_copies_too(kept: Run, tmp_path: Path) -> None:
    kept("keep", revision="3")
    with pytest.raises(ModuleFailedError, match="are back, but not the cache's pod"):
        kept("restore", revision="4", status=1)
    assert (tmp_path / "kept").exists()


def test_without_copies_nothing_is_put_back(kept: Run, cache: Path) -> None:
    assert kept("restore") == {"changed": False, "paths": [], "invocation": kept("restore")["invocation"]}
    kept("keep")
    kept("forget")
    replace(cache)
    assert kept("restore")["changed"] is False
    assert (cache / f"login-{NAME}").read_text() == "new"


def test_check_mode_keeps_nothing(kept: Run, tmp_path: Path) -> None:
    kept("keep", check=True)
    assert not (tmp_path / "kept").exists()
