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
    facts = run_module("pai_facts", namespaces=["kube-system", "pai-kueue"])["ansible_facts"]["pai"]
    assert "connection refused" in facts["cluster"]["error"]
    assert [len(role["drift"]) for role in facts["roles"].values()] == [len(NAMESPACES)] * 2
    calls = asked.read_text().splitlines()
    assert not [call for call in calls if "configmap/a" in call]
    assert len(calls) == 1, "the nodes and the namespaces"


def test_pods_are_asked_for_in_namespaces_that_exist(
    asked: Path, run_module: Callable[..., dict[str, Any]], kubectl_util: Any, tmp_path: Path
) -> None:
    objects = {"nodes,namespaces": [named("Node", "a"), named("Namespace", "kube-system"), named("Namespace", "team")]}
    objects["pods"] = [named("Pod", "etcd")]
    answers = {words: json.dumps({"kind": "List", "items": items}) for words, items in objects.items()}
    cases = "".join(f"*' {words}'*) echo '{answer}' ;;\n" for words, answer in answers.items())
    (tmp_path / "kubectl").write_text(f'#!/bin/sh\necho "$*" >>{asked}\ncase "$*" in {cases} esac\n')
    seen = run_module("pai_facts", namespaces=["kube-system", "pai-kueue"])["ansible_facts"]["pai"]["cluster"]
    assert seen["error"] == ""
    assert [node["name"] for node in seen["nodes"]] == ["a"]
    assert [pod["name"] for pod in seen["pods"]] == ["etcd"]
    asked_for = [call.partition("--namespace=")[2] for call in asked.read_text().splitlines() if " pods" in call]
    assert asked_for == ["kube-system"]


def named(kind: str, name: str) -> dict[str, Any]:
    """An object with no more than its kind and its name."""
    return {"kind": kind, "metadata": {"name": name}}
