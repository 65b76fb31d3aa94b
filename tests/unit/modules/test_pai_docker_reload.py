"""Docker takes its registries by a reload: seen in what it uses, never restarted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from .conftest import ModuleFailedError, Run

STAND_IN = """#!/bin/sh
cd "$STAND_IN_DOCKER"
case "$(basename "$0") $1" in
"docker info") cat info.json ;;
"systemctl show") cat unit ;;
"systemctl reload") echo "$*" >> calls; test ! -e reloaded.json || cp reloaded.json info.json; exit "$(cat status)" ;;
"systemctl "*) echo "$*" >> calls ;;
"journalctl "*) echo "a line of the log" ;;
esac
"""
OURS = {
    "live-restore": True,
    "registry-mirrors": ["https://m.example", "https://cache:30500/"],
    "insecure-registries": ["r.example:5000", "10.1.2.3/8", "http://old.example"],
}


def info(mirrors: list[str], insecure: list[str], *, live: bool = True) -> dict[str, Any]:
    """What `docker info` says."""
    networks = [word for word in insecure if "/" in word]
    hosts = {word: {"Name": word, "Mirrors": [], "Secure": False} for word in insecure if "/" not in word}
    indexes = {"docker.io": {"Name": "docker.io", "Mirrors": mirrors, "Secure": True, "Official": True}, **hosts}
    cidrs = ["::1/128", "127.0.0.0/8", *networks]
    registries = {"InsecureRegistryCIDRs": cidrs, "IndexConfigs": indexes, "Mirrors": mirrors or None}
    return {"LiveRestoreEnabled": live, "RegistryConfig": registries}


SAME = info(
    ["https://m.example/", "https://cache:30500/"], ["r.example:5000", "old.example", "10.0.0.0/8"]
)  # as dockerd keeps OURS


class Docker:
    """The stand-in, and what was asked of it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.file = home / "daemon.json"
        self.file.write_text(json.dumps(OURS))
        (home / "status").write_text("0")
        self.runs("active")
        self.uses(SAME)

    def runs(self, state: str) -> None:
        """The state of the unit."""
        (self.home / "unit").write_text(f"Id=docker.service\nActiveState={state}\n")

    def uses(self, before: dict[str, Any], after: dict[str, Any] | None = None) -> None:
        """What it uses now, and once it is reloaded; None: the reload changes nothing."""
        (self.home / "info.json").write_text(json.dumps(before))
        if after is not None:
            (self.home / "reloaded.json").write_text(json.dumps(after))

    @property
    def calls(self) -> list[str]:
        """What systemctl did."""
        path = self.home / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def docker(tmp_path: Path, running: Any, monkeypatch: pytest.MonkeyPatch) -> Docker:
    """Comes first on PATH."""
    for name in ("docker", "systemctl", "journalctl"):
        (tmp_path / name).write_text(STAND_IN)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("STAND_IN_DOCKER", str(tmp_path))
    made = Docker(tmp_path)
    monkeypatch.setattr(running, "DAEMON_JSON", str(made.file))
    return made


def test_docker_that_uses_what_its_file_says_is_left_alone(docker: Docker, run_module: Run) -> None:
    assert run_module("pai_docker_reload") == {**run_module("pai_docker_reload"), "changed": False, "different": []}
    assert docker.calls == []


@pytest.mark.parametrize(
    "before",
    [
        info([], ["r.example:5000", "old.example", "10.0.0.0/8"]),
        info(["https://cache:30500/", "https://m.example/"], ["r.example:5000", "old.example", "10.0.0.0/8"]),
        info(["https://m.example/", "https://cache:30500/"], ["r.example:5000", "old.example"]),
        {**SAME, "LiveRestoreEnabled": False},
        {},
    ],
    ids=["no mirror", "another order", "a network less", "no live-restore", "no answer"],
)
def test_what_differs_is_applied_by_a_reload(docker: Docker, run_module: Run, before: dict[str, Any]) -> None:
    docker.uses(before, SAME)
    assert run_module("pai_docker_reload", check=True)["changed"]
    assert docker.calls == []
    result = run_module("pai_docker_reload")
    assert result["changed"]
    assert docker.calls == ["reload docker.service"]
    assert not run_module("pai_docker_reload")["changed"]


def test_what_the_file_no_longer_names_is_a_difference(
    docker: Docker, run_module: Run, snapshot: SnapshotAssertion
) -> None:
    more = info(["https://old/", *SAME["RegistryConfig"]["Mirrors"]], ["gone:5000", "r.example:5000"])
    more["RegistryConfig"]["IndexConfigs"]["old.example"] = {"Secure": False}
    more["RegistryConfig"]["InsecureRegistryCIDRs"].append("10.0.0.0/8")
    docker.uses(more, SAME)
    assert run_module("pai_docker_reload")["different"][1] == snapshot


def test_key_that_the_file_does_not_have_says_nothing(docker: Docker, run_module: Run) -> None:
    """dockerd keeps what it had, from a flag or an earlier file: no reload would make a difference."""
    docker.file.write_text("{}")
    assert not run_module("pai_docker_reload")["changed"]
    docker.file.write_text('{"registry-mirrors": []}')
    docker.uses(SAME, info([], []))
    assert run_module("pai_docker_reload")["changed"]


@pytest.mark.parametrize("state", ["inactive", "failed"])
def test_docker_that_does_not_run_is_left_alone(docker: Docker, run_module: Run, state: str) -> None:
    docker.runs(state)
    docker.uses({})
    assert not run_module("pai_docker_reload")["changed"]
    assert docker.calls == []


@pytest.mark.parametrize("status", ["0", "1"])
def test_reload_that_does_not_take_effect_fails_the_task_and_restarts_nothing(
    docker: Docker, run_module: Run, tmp_path: Path, status: str, snapshot: SnapshotAssertion
) -> None:
    """With live-restore off, containers would be stopped by a restart of it or of containerd."""
    docker.uses({**SAME, "LiveRestoreEnabled": False})
    (docker.home / "status").write_text(status)
    old = tmp_path / "old"
    old.write_text("old")
    with pytest.raises(ModuleFailedError) as failed:
        run_module("pai_docker_reload", rollback={str(docker.file): str(old)}, timeout=0)
    result = failed.value.result
    assert result["msg"].endswith(f"was not restarted; restored {docker.file}")
    assert result["evidence"]["docker.service"] == snapshot
    assert status == "1" or result["evidence"]["docker info"] == ["live-restore is off"]
    assert docker.calls == ["reload docker.service"] * 2, "the second one is for the old file"
    assert docker.file.read_text() == "old"
