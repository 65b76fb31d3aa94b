"""Objects in check mode: what would change is said, in the form that the next task of the role reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run

OBJECTS = [{"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}]


@pytest.mark.parametrize("status", [0, 1, 2])
def test_check_mode_always_returns_what_is_managed(run_module: Run, tmp_path: Path, status: int) -> None:
    kubectl = tmp_path / "kubectl-stand-in"
    kubectl.write_text(f"#!/bin/sh\ncat > /dev/null\nexit {status}\n")
    kubectl.chmod(0o755)
    said = run_module("pai_kube_apply", check=True, objects=OBJECTS, kubectl=str(kubectl))
    assert said["changed"] is (status != 0)
    assert said["managed"] == []
