"""The parts of `make bench-scheduler` that need no cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_args

import pytest

from pai_install.schedulers.compile import objects_of
from pai_install.schedulers.hived.compile import NAMESPACE
from pai_install.scheduling.model import Backend
from tests.perf.gangs import GPU, NAME, UNITS_LABEL, Result, gang, gangs, judge, nodes, site_of, size_of
from tests.perf.hived_bench import as_it_was
from tests.perf.made_objects import there_are, until
from tests.perf.scheduler_bench import rows


def pods_of(name: str, size: int, units: int, bound: int) -> list[dict[str, Any]]:
    """All of a gang's; so many of them with a machine."""
    template = gang("default", name, "a", size, units)["spec"]["template"]
    return [
        {
            "metadata": {"namespace": "a", "labels": template["metadata"]["labels"]},
            "spec": {**template["spec"], **({"nodeName": "gpu-000"} if number < bound else {})},
        }
        for number in range(size)
    ]


def template_of(job: dict[str, Any]) -> dict[str, Any]:
    """The pod of a gang."""
    spec = job["spec"]
    found: dict[str, Any] = spec["tasks"][0]["template"] if "tasks" in spec else spec["template"]
    return found


@dataclass
class Recorder:
    """No cluster answers: what kubectl was asked for. Something is still there at so many looks."""

    stays: int
    asked: list[str] = field(default_factory=list)

    def kubectl(self, *words: str) -> str:
        assert any("request-timeout" in word for word in words)
        self.asked.append(words[0])
        return "node/left" if self.asked.count("get") <= self.stays and words[0] == "get" else ""


def test_the_site_is_shared_without_a_rest() -> None:
    site = site_of("default")
    assert sum(it.shares[0].units for it in site.clusters) == site.supply[NAME].total == 1600
    assert len(list(nodes(site))) == 200
    assert not [it.name for it in site.clusters if it.name.startswith(("pai-", "kube-"))], "Kueue is not asked there"


@pytest.mark.parametrize("backend", get_args(Backend))
def test_gangs_ask_for_more_than_there_is_and_each_virtual_cluster_for_more_than_its_own(backend: Backend) -> None:
    asked: dict[str, int] = {}
    for job in gangs(site_of(backend)):
        units = int(template_of(job)["metadata"]["labels"][UNITS_LABEL])
        space = job["metadata"]["namespace"]
        asked[space] = asked.get(space, 0) + units * size_of(job)
    assert len(asked) == 10
    assert all(units > 160 for units in asked.values())


@pytest.mark.parametrize("backend", ["kueue", "volcano", "default"])
def test_a_pod_asks_for_the_devices_of_its_label(backend: Backend) -> None:
    resources = template_of(gang(backend, "a", "b", 2, 4))["spec"]["containers"][0]["resources"]
    assert resources["limits"] == {GPU: "4"}
    assert resources["requests"][GPU] == "4", "Volcano takes a gang with limits alone for one that needs nothing"


def test_a_pod_of_hived_asks_for_cells_of_the_machines_that_its_configuration_has() -> None:
    site = site_of("hived")
    pod = template_of(gang("hived", "a", f"{NAME}-3", 2, 4))
    (asked,) = pod["metadata"]["annotations"].values()
    assert f"virtualCluster: {NAME}-3\n" in asked
    assert "podNumber: 2\n    leafCellNumber: 4" in asked
    texts = {it["metadata"]["name"]: it["data"] for it in objects_of(site) if it["kind"] == "ConfigMap"}
    assert f"leafCellType: {NAME}\n" in asked
    assert f"childCellType: {NAME}\n" in texts["hivedscheduler"]["hivedscheduler.yaml"]
    assert pod["spec"]["schedulerName"] in texts["kube-scheduler"]["config.yaml"]


def test_what_hived_had_comes_back_as_it_was() -> None:
    before = next(it for it in objects_of(site_of("hived")) if it["metadata"].get("namespace") == NAMESPACE)
    found = {**before, "metadata": {**before["metadata"], "resourceVersion": "7", "uid": "x"}, "status": {}}
    assert as_it_was(found) == before


def test_judge_tells_whole_from_partial_and_who_has_too_much() -> None:
    sizes = {"two": 2, "one": 1}
    pods = [*pods_of("two", 2, 8, 1), *pods_of("one", 1, 8, 1)]
    assert judge("x", 3.0, sizes, pods, 8) == Result(
        "x", 3, pods=2, units=16, whole=1, partial=1, held_in_vain=8, violations=1
    )
    assert judge("x", 3.0, sizes, pods_of("two", 2, 8, 2), 16) == Result("x", 3.0, 2, 16, 1, 0, 0, 0)


@pytest.mark.parametrize(
    ("scheduler", "wanted", "expected"),
    [
        ("kueue", [], ["kube-scheduler alone", "default", "kueue"]),
        ("hived", [], ["kube-scheduler alone", "default", "hived"]),
        ("default", [], ["kube-scheduler alone", "default"]),
        ("volcano", ["volcano"], ["volcano"]),
    ],
)
def test_each_scheduler_stands_beside_kubernetes_own(
    scheduler: Backend, wanted: list[str], expected: list[str]
) -> None:
    assert [name for name, _backend in rows(scheduler, wanted)] == expected


def test_what_an_earlier_run_left_goes_first_and_no_call_waits_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    cluster = Recorder(stays=2)
    with there_are(cluster, [{"kind": "Node"}]):
        assert cluster.asked == ["delete", "get", "get", "get", "create"]
    assert cluster.asked[5:] == ["delete", "get"]


def test_what_does_not_go_is_an_error() -> None:
    with pytest.raises(TimeoutError, match="within 0 s"):
        until(lambda: False, 0)
