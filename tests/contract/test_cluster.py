"""The controller host and the machines read and judge nodes and pods alike."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pai_install.health.cluster.conditions import node_finding, pod_findings
from pai_install.kube.model import Node, Pod
from pai_install.report.findings import FindingEntry
from tests.ansible_path import module_util

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "unit" / "cluster" / "recorded"
VERSION = "1.36.3"
FORGED = [{"type": f"Forged{n}" * 50, "status": "True"} for n in range(50)]
BROKEN: tuple[Any, ...] = (
    *({}, {"metadata": None}, {"spec": [], "status": "x"}, {"status": {"conditions": [None, {}]}}),
    {"status": {"conditions": FORGED}},
)


# as the machines run it
STATE = module_util("pai_cluster_state")


def recorded(name: str) -> Iterator[dict[str, Any]]:
    """The recorded objects, each also with one part taken away, and some that are none."""
    for item in json.loads((RECORDED / f"{name}.json").read_text())["items"]:
        yield item
        for part in ("metadata", "spec", "status"):
            yield {key: value for key, value in item.items() if key != part}
        for key in item["status"]:
            cut = copy.deepcopy(item)
            del cut["status"][key]
            yield cut
    yield from BROKEN


def plain(value: object) -> object:
    """A value as JSON has it."""
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize(("name", "model"), [("nodes", Node), ("pods", Pod)])
def test_both_sides_read_alike(name: str, model: type[Node | Pod]) -> None:
    read = {"nodes": STATE.node_facts, "pods": STATE.pod_facts}[name]
    names = {field.name for field in fields(model)}
    for raw in recorded(name):
        facts, value = read(raw), model.parse(raw)
        assert facts.keys() <= names
        assert facts == {key: plain(getattr(value, key)) for key in facts}


def words(finding: Any) -> dict[str, str]:
    """A finding as plain text, empty fields left out."""
    found = finding if isinstance(finding, dict) else FindingEntry.model_validate(finding).as_json()
    return {key: text for key, text in found.items() if text}


def test_both_sides_judge_nodes_alike() -> None:
    for raw in recorded("nodes"):
        for name in ("worker1", "nobody"):
            for version in (VERSION, "1.35.0"):
                ours = node_finding(name, Node.parse(raw), version)
                assert words(STATE.judge_node(name, STATE.node_facts(raw), version)) == words(ours)
    assert words(STATE.judge_node("x", None, VERSION)) == words(node_finding("x", None, VERSION))


def test_both_sides_judge_pods_alike() -> None:
    every = list(recorded("pods"))
    well = [raw for raw in every if Pod.parse(raw).well]
    for pods in (every, well, []):
        theirs = [words(found) for found in STATE.judge_pods([STATE.pod_facts(raw) for raw in pods])]
        assert theirs == [words(found) for found in pod_findings([Pod.parse(raw) for raw in pods])]
