"""pai_facts: what a control plane sees of itself while its API server is dead."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NAMESPACES = ("", "kube-system", "kueue-system", "jobset-system")


@pytest.fixture
def asked(kubectl_util: Any, managed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records with objects in several namespaces, and the calls of a kubectl that no API server answers."""
    (tmp_path / "admin.conf").touch()
    objects = [{"kind": "object", "namespace": one, "name": "configmap/a", "version": "1"} for one in NAMESPACES]
    for role in ("addon.kueue", "addon.jobset"):
        (tmp_path / f"{role}.json").write_text(json.dumps({"settings": {}, "managed": objects}))
    log, program = tmp_path / "calls", tmp_path / "kubectl"
    program.write_text(f'#!/bin/sh\necho "$*" >>{log}\necho "connection refused" >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setattr(managed, "ROLES_DIR", str(tmp_path))
    monkeypatch.setattr(kubectl_util, "ADMIN_CONF", str(tmp_path / "admin.conf"))
    monkeypatch.setattr(kubectl_util.Kubectl.__init__, "__defaults__", ("admin.conf", str(program)))
    return log


def test_a_dead_api_server_is_asked_once_and_not_for_each_namespace(
    asked: Path, run_module: Callable[..., dict[str, Any]]
) -> None:
    # the nodes alone: of questions at the same time, those that have not begun are left out after the first failure
    facts = run_module("pai_facts", namespaces=[])["ansible_facts"]["pai"]
    assert "connection refused" in facts["cluster"]["error"]
    assert [len(role["drift"]) for role in facts["roles"].values()] == [len(NAMESPACES)] * 2
    calls = asked.read_text().splitlines()
    assert not [call for call in calls if "configmap/a" in call]
    assert len(calls) == 1, "the nodes"
