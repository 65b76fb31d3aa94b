"""Files and links in a site of someone else: none leads outside the site, fills the memory, or makes a verb wait."""

from __future__ import annotations

import gzip
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pai_install.documents.reader import read_document
from pai_install.engine.runner import _plain_path
from pai_install.health.evidence.file import load
from pai_install.health.evidence.raw import raw_name
from pai_install.registry.identity import open_identity
from pai_install.registry.model import ServedNames
from pai_install.run.saved import read_plan
from pai_install.run.state import open_state
from pai_install.run.support.bundle import from_controller_host, known_secrets
from pai_install.run.support.gather import Collected
from pai_install.system.files import read_bounded
from tests.errors import raises


@pytest.mark.parametrize("name", [".pai", ".pai/work", ".pai/runs", ".pai/health"])
def test_a_state_folder_that_is_a_link_is_refused(tmp_path: Path, name: str) -> None:
    site, other = tmp_path / "site", tmp_path / "other"
    other.mkdir()
    other.chmod(0o755)
    (site / name).parent.mkdir(parents=True, exist_ok=True)
    (site / name).symlink_to(other)
    with raises("state-folder-link"):
        open_state(site)
    assert (other.stat().st_mode & 0o777, list(other.iterdir())) == (0o755, [])


def test_an_identity_is_not_made_behind_a_link(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    other.chmod(0o755)
    (tmp_path / ".pai").symlink_to("other")
    with raises("state-folder-link"):
        open_identity(tmp_path / ".pai" / "registry.json", ServedNames(("a",), ("b",)), datetime.now(UTC))
    assert other.stat().st_mode & 0o777 == 0o755


def test_a_run_that_is_a_link_is_in_no_support_bundle(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "report.md").write_text("of another site")
    state = open_state(tmp_path / "site")
    state.runs.mkdir()
    (state.runs / "20260101T000000Z-apply").symlink_to(other)
    found = Collected()
    from_controller_host(tmp_path / "site", state, found)
    assert found.files == {}
    assert state.reports() == []


def special(folder: Path, kind: str) -> Path:
    """A file that no reader should read to its end."""
    path = folder / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "sparse":
        with path.open("wb") as handle:
            handle.truncate(1 << 40)
    else:
        path.write_text("[" * 100_000)
    return path


@pytest.mark.parametrize("kind", ["pipe", "device", "sparse"])
def test_no_special_file_is_read(tmp_path: Path, kind: str) -> None:
    with pytest.raises(OSError, match=r"regular file|larger than"):
        read_bounded(special(tmp_path, kind), 1 << 20)


@pytest.mark.parametrize("kind", ["pipe", "device", "sparse", "deep"])
def test_special_files_are_no_plan(tmp_path: Path, kind: str) -> None:
    with raises("plan-file-invalid"):
        read_plan(special(tmp_path, kind))


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_special_files_are_no_evidence(tmp_path: Path, kind: str) -> None:
    with raises("evidence-unreadable"):
        list(load(special(tmp_path, kind)))


@pytest.mark.parametrize("content", [b" " * (65 << 20), b"\n" * 200_000])
def test_a_small_file_of_much_evidence_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(content, 1))
    with raises("evidence-unreadable"):
        list(load(path))


def test_a_bundle_takes_no_link_and_no_deep_file(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    run = state.runs / "20260101T000000Z"
    run.mkdir(parents=True)
    (tmp_path / "foreign").write_text("foreign secret")
    (run / "ansible.log").symlink_to(tmp_path / "foreign")
    (run / "report.json").write_text("{}")
    (state.path / "state.json").write_text("[" * 100_000)
    found = Collected()
    from_controller_host(tmp_path, state, found)
    assert [name for name in found.files if name.startswith("runs/")] == [f"runs/{run.name}/report.json"]
    assert list(known_secrets(tmp_path, state)) == [{"password": []}]


def test_a_character_beyond_unicode_is_a_problem_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text('user: "\\Uffffffff"\n')
    assert [problem.code for problem in read_document(tmp_path / "config.yaml").problems] == ["site.syntax"]


def test_a_long_machine_name_is_a_file_name() -> None:
    assert len(raw_name("x" * 300)) < 255
    assert raw_name("x" * 300) != raw_name("x" * 301)


def test_a_limit_has_no_character_at_which_ansible_splits(tmp_path: Path) -> None:
    folder = tmp_path / "a b,c:d" / "run-1"
    folder.mkdir(parents=True)
    (folder / "limit").write_text("gpu-01\n")
    sockets = tmp_path / "sockets"
    sockets.mkdir()
    link = _plain_path(folder / "limit", sockets)
    assert link.parent == sockets
    assert link.read_text() == "gpu-01\n"
