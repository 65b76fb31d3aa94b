"""The self-test at the end of an installation: the workers that take pods then, and the most important scenarios."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pai_install.run.self_test import worker
from pai_install.scheduling.selftest.course import Course, begun
from pai_install.scheduling.selftest.model import Scenario
from pai_install.scheduling.selftest.objects import Cast
from pai_install.scheduling.selftest.volcano import GROUP_LABEL
from tests.unit.cluster.fake import FakeCluster

BOUNDS = {"start_s": 60.0, "back_s": 30.0, "requeue_s": 0.0}


def node(name: str, ready: str = "True", group: str = "") -> dict[str, Any]:
    metadata = {"name": name, "labels": {GROUP_LABEL: group} if group else {}}
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    return {"kind": "Node", "metadata": metadata, "spec": {}, "status": status}


@dataclass
class Stage:
    """What was played, by whom."""

    casts: list[Cast] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def open(self, cluster: object, cast: Cast) -> Stage:
        del cluster
        self.casts.append(cast)
        return self

    def play(self, scenarios: Sequence[Scenario]) -> list[Course]:
        self.names += [one.name for one in scenarios]
        return [begun(one, 0.0) for one in scenarios]


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage()
    monkeypatch.setattr(worker, "Theatre", made.open)
    return made


def tried(tmp_path: Path, backend: str, *nodes: dict[str, Any]) -> dict[str, str]:
    arguments = {"backend": backend, "image": "busybox", "workers": ["one", "two", "three"], "bounds": BOUNDS}
    work = worker.self_test(FakeCluster.of(*nodes), tmp_path / "kept.json")
    return {found.id: str(found.verdict) for found in work(("master",), arguments)}


def test_the_workers_that_take_pods_now_are_asked(tmp_path: Path, stage: Stage) -> None:
    nodes = node("one", "False"), node("two", group="a100"), node("three", group="own.x"), node("master")
    found = tried(tmp_path, "volcano", *nodes)
    assert stage.names == ["quota", "gang", "borrow"]
    (cast,) = stage.casts
    assert (cast.machines, cast.groups) == (("three", "two"), ("a100", "own.x"))
    assert sorted(found) == [f"scheduler-{name}" for name in ("borrow", "gang", "quota", "reclaim", "start")]
    assert "PASS" not in found.values(), "nothing was seen"
    assert json.loads((tmp_path / "kept.json").read_text())["backend"] == "volcano"


def test_kubernetes_own_scheduler_is_tried_in_what_it_promises(tmp_path: Path, stage: Stage) -> None:
    assert sorted(tried(tmp_path, "default", node("two"))) == ["scheduler-quota", "scheduler-start"]
    assert stage.names == ["quota"]


def test_where_no_worker_takes_pods_the_test_is_left_out(tmp_path: Path, stage: Stage) -> None:
    assert tried(tmp_path, "kueue", node("one", "Unknown"), node("master")) == {"scheduler-start": "SKIP"}
    assert stage.names == []
