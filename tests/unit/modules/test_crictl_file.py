"""crictl's file as the role kubernetes_node writes it: containerd's socket, and whatever else the admin has there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from .conftest import Run

ROLE = Path(__file__).parents[3] / "roles" / "kubernetes_node"
SOCKET = "unix:///run/containerd/containerd.sock"
ENDPOINTS = {"runtime-endpoint": SOCKET, "image-endpoint": SOCKET}


@pytest.fixture
def item(tmp_path: Path) -> dict[str, Any]:
    """The file as the role's task describes it, below the test's folder; without crictl's own check."""
    tasks = yaml.safe_load((ROLE / "tasks/main.yml").read_text())
    listed = next(task["pai_state"]["files"] for task in tasks if "pai_state" in task)
    entry: dict[str, Any] = next(found for found in listed if found["path"] == "/etc/crictl.yaml")
    variables = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    given = {name: variables[entry[name].strip("{} ")] for name in ("block", "replace")}
    return {**entry, **given, "path": str(tmp_path / "crictl.yaml"), "validate": None}


@pytest.mark.parametrize(
    ("old", "kept"),
    [
        (None, {}),
        ("timeout: 7\n", {"timeout": 7}),
        ("runtime-endpoint: unix:///var/run/dockershim.sock\ndebug: true\n", {"debug": True}),
        (f'image-endpoint: ""\nruntime-endpoint: {SOCKET}\ntimeout: 7', {"timeout": 7}),
    ],
)
def test_endpoints_are_containerds_and_other_keys_stay(
    run_module: Run, item: dict[str, Any], old: str | None, kept: dict[str, Any]
) -> None:
    path = Path(item["path"])
    if old is not None:
        path.write_text(old)
    first = run_module("pai_files", files=[item])
    assert yaml.safe_load(path.read_text()) == ENDPOINTS | kept
    text = path.read_text()
    assert first["paths"] == [], "the kubelet does not restart for it"
    if old:
        assert Path(first["backups"][item["path"]]).read_text() == old
    assert not run_module("pai_files", files=[item])["changed"]
    assert path.read_text() == text


def test_endpoint_that_is_set_again_is_drift(
    run_module: Run, managed: Any, item: dict[str, Any], snapshot: SnapshotAssertion
) -> None:
    expected = run_module("pai_files", files=[item])["managed"]
    assert managed.drift(expected) == []
    path = Path(item["path"])
    path.write_text(path.read_text() + "runtime-endpoint: unix:///run/other.sock\n")
    assert managed.drift(expected) == snapshot
