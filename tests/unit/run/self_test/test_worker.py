"""The self-test at the end of an installation: the workers that take pods then, and the most important scenarios."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pai_install.run.self_test import worker
from pai_install.schedulers.last_applied import kept_object
from pai_install.schedulers.self_test.model import Scenario
from pai_install.schedulers.self_test.objects import SelfTestContext
from pai_install.schedulers.self_test.scenario_run import ScenarioRun, begun
from pai_install.schedulers.self_test.scenarios import QUICK
from pai_install.schedulers.volcano.self_test import GROUP_LABEL
from pai_install.scheduling.job_queue import HIVED_SPEC
from tests.unit.cluster.fake import FakeCluster
from tests.unit.scheduling.usage.objects import pod
from tests.virtual_clusters import cluster, gpus, share, site, with_backend

WORKERS = ["one", "two", "three"]
BOUNDS = {"start_s": 60.0, "back_s": 30.0, "requeue_s": 0.0}


def node(name: str, ready: str = "True", group: str = "") -> dict[str, Any]:
    metadata = {"name": name, "labels": {GROUP_LABEL: group} if group else {}}
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    return {"kind": "Node", "metadata": metadata, "spec": {}, "status": status}


@dataclass
class Stage:
    """What was played, by whom."""

    casts: list[SelfTestContext] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def open(self, cluster: object, context: SelfTestContext, *, waits: bool) -> Stage:
        del cluster, waits
        self.casts.append(context)
        return self

    def play(self, scenarios: Sequence[Scenario]) -> list[ScenarioRun]:
        self.names += [one.name for one in scenarios]
        return [begun(one, 0.0) for one in scenarios]


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage()
    monkeypatch.setattr(worker, "SelfTestRunner", made.open)
    return made


def tried(tmp_path: Path, backend: str, *nodes: dict[str, Any]) -> dict[str, str]:
    arguments = {"backend": backend, "image": "busybox", "workers": WORKERS, "scenarios": QUICK, "bounds": BOUNDS}
    work = worker.self_test(FakeCluster.of(*nodes), tmp_path / "kept.json")
    return {found.id: str(found.verdict) for found in work(("master",), arguments)}


def test_the_workers_that_take_pods_now_are_asked(tmp_path: Path, stage: Stage) -> None:
    nodes = node("one", "False"), node("two", group="a100"), node("three", group="own.x"), node("master")
    found = tried(tmp_path, "volcano", *nodes)
    assert stage.names == ["quota", "gang", "borrow"]
    (context,) = stage.casts
    assert (context.machines, context.groups) == (("three", "two"), ("a100", "own.x"))
    assert sorted(found) == [f"scheduler-{name}" for name in ("borrow", "gang", "quota", "reclaim", "start")]
    assert "PASS" not in found.values(), "nothing was seen"
    assert json.loads((tmp_path / "kept.json").read_text())["backend"] == "volcano"


def test_kubernetes_own_scheduler_is_tried_in_what_it_promises(tmp_path: Path, stage: Stage) -> None:
    assert sorted(tried(tmp_path, "default", node("two"))) == ["scheduler-quota", "scheduler-start"]
    assert stage.names == ["quota"]


def test_where_no_worker_takes_pods_the_test_is_left_out(tmp_path: Path, stage: Stage) -> None:
    assert tried(tmp_path, "kueue", node("one", "Unknown"), node("master")) == {"scheduler-start": "SKIP"}
    assert stage.names == []


SUPPLY = gpus("a100", 2)
DIVIDED = with_backend(
    site(SUPPLY, clusters=(cluster("research", share(SUPPLY, 8)), cluster("product", share(SUPPLY, 8)))), "hived"
)


def machine(name: str) -> dict[str, Any]:
    found = node(name)
    return {**found, "status": {**found["status"], "allocatable": {"nvidia.com/gpu": "8"}}}


def on_hived(tmp_path: Path, cluster: FakeCluster, **words: Any) -> dict[str, tuple[str, str]]:
    """Check -> verdict and what is said, of a whole test or, with workers, of that after an installation."""
    whole = {"machines": ["a100-1", "a100-2"], "groups": [], "disruptive": False}
    arguments = {
        "backend": "hived",
        "image": "busybox",
        "scenarios": QUICK,
        "bounds": BOUNDS,
        "kept": kept_object(DIVIDED),
    }
    work = worker.self_test(cluster, tmp_path / "kept.json")
    found = work(("master",), {**arguments, **(words or whole)})
    return {one.id: (str(one.verdict), one.message) for one in found}


def users_pod() -> dict[str, Any]:
    note = {HIVED_SPEC: "virtualCluster: research\npriority: 10\nleafCellNumber: 8"}
    return {**pod("job", "a100-1", notes=note, scheduler="hivedscheduler-ds-research"), "kind": "Pod"}


def test_scenarios_of_hived_are_played_one_after_the_other(tmp_path: Path, stage: Stage) -> None:
    found = on_hived(tmp_path, FakeCluster.of(machine("a100-1"), machine("a100-2")))
    assert stage.names == ["quota", "priority", "restart", "gang", "deadlock", "oversize", "borrow"]
    assert len(stage.casts) == len(stage.names)
    assert {one.cells.cluster for one in stage.casts if one.cells} == {"research"}
    assert "--disruptive" in found["scheduler-down"][1]
    assert found["scheduler-requeue"][0] == "SKIP"


def test_an_installation_tries_hived_in_what_matters_most(tmp_path: Path, stage: Stage) -> None:
    found = on_hived(tmp_path, FakeCluster.of(machine("a100-1"), machine("a100-2")), workers=["a100-1", "a100-2"])
    assert stage.names == ["quota", "gang", "borrow"]
    assert "SKIP" not in [verdict for verdict, _ in found.values()]


@pytest.mark.parametrize("words", [{}, {"workers": ["a100-1", "a100-2"]}])
def test_beside_jobs_of_users_hived_is_not_tried_and_that_is_told(tmp_path: Path, stage: Stage, words: Any) -> None:
    found = on_hived(tmp_path, FakeCluster.of(machine("a100-1"), machine("a100-2"), users_pod()), **words)
    assert stage.names == []
    assert {verdict for verdict, _ in found.values()} == {"SKIP"}
    assert any("jobs have or want a100" in said for _, said in found.values())


def test_what_a_users_job_came_into_says_nothing(tmp_path: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster.of(machine("a100-1"), machine("a100-2"))

    def play(scenarios: Sequence[Scenario]) -> list[ScenarioRun]:
        stage.names += [one.name for one in scenarios]
        if scenarios[0].name == "restart":
            cluster.apply([users_pod()], force=True)
        return [begun(one, 0.0) for one in scenarios]

    monkeypatch.setattr(stage, "play", play)
    found = on_hived(tmp_path, cluster)
    assert stage.names == ["quota", "priority", "restart"]
    missed = {check.removeprefix("scheduler-") for check, (_, said) in found.items() if "came meanwhile" in said}
    assert missed == {"restart", "gang", "deadlock", "oversize", "borrow", "reclaim"}
    assert {found[f"scheduler-{name}"][0] for name in missed} == {"SKIP"}
