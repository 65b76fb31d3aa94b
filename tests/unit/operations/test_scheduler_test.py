"""Which machines and which scheduler the self-test uses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode
from pai_install.operations.scheduler_test import SchedulerTest
from pai_install.plan.model import Inventory, LocalWork, Plan
from pai_install.plan.observation import Observation
from pai_install.schedulers.last_applied import kept_of
from pai_install.site import Site, load_site
from tests.errors import raises
from tests.unit.site.sites import LAYOUT, write_site

WORKERS = "".join(
    f'  - {{hostname: w{number}, hostip: 10.0.0.{number + 1}, machine-type: gpu, pai-worker: "true"}}\n'
    for number in (2, 3, 4)
)
KUEUE = {"data": {"configuration.yaml": "waitForPodsReady:\n  timeout: 5m\n"}}


def node(name: str, *, ready: str = "True", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready}]
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": {"conditions": conditions}}


ALL = tuple(node(name) for name in ("w4", "m1", "w3", "w2", "w1"))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    services = "scheduler: {type: kueue}\nvirtual-clusters: [{name: default, quota: [{sku: gpu, machines: 1}]}]\n"
    return load_site(write_site(tmp_path, layout=LAYOUT + WORKERS, services=services)).site


def plan(site: Site, nodes: tuple[Any, ...] = ALL, settings: tuple[Any, ...] = (KUEUE,), **words: Any) -> Plan:
    inventory = Inventory({}, {"cluster_verify_image": "store/busybox"}, {"m1": {}})
    return SchedulerTest(**words).plan(site, Observation(inventory, {}, answers=(nodes, settings)))


def arguments(found: Plan) -> dict[str, Any]:
    (step,) = found.steps
    assert isinstance(step.action, LocalWork)
    assert (step.action.name, step.looks, step.proves) == ("scheduler-test", True, False)
    return dict(step.action.arguments)


def test_two_workers_hold_the_pods_of_the_sites_scheduler(site: Site) -> None:
    SchedulerTest().require(site)
    found = plan(site)
    assert arguments(found) == {
        "backend": "kueue",
        "image": "store/busybox",
        "machines": ["w1", "w2"],
        "groups": [],
        "disruptive": False,
        "bounds": {"start_s": 60.0, "back_s": 30, "requeue_s": 0.0},
    }
    (host,) = found.steps[0].hosts
    assert (host.host, host.reasons, host.effects) == ("m1", ("asked for; pods run on w1 and w2",), ())


@pytest.mark.parametrize(
    "away",
    [
        node("w1", ready="False"),
        node("w1", ready="Unknown"),
        node("w1", unschedulable=True),
        node("w1", taints=[{"key": "x", "effect": "NoSchedule"}]),
    ],
)
def test_workers_that_take_no_pods_are_left_out(site: Site, away: dict[str, Any]) -> None:
    assert arguments(plan(site, (away, node("w2"))))["machines"] == ["w2"]
    with raises("no-ready-worker") as caught:
        plan(site, (away, node("m1"), node("stranger")))
    assert caught.value.exit_code == ExitCode.VERIFICATION_FAILED


def test_groups_of_machines_are_named_to_volcano(site: Site) -> None:
    labelled = tuple(node(name, labels={"volcano.sh/nodegroup-name": "a100"}) for name in ("w1", "w2"))
    found = arguments(plan(site, labelled, backend="volcano"))
    assert (found["backend"], found["groups"]) == ("volcano", ["a100"])


@pytest.mark.parametrize(("wait_s", "requeue_s"), [(90, 0.0), (329, 0.0), (330, 330.0), (3600, 330.0)])
def test_kueues_own_time_is_waited_for_where_that_is_asked_for(site: Site, wait_s: int, requeue_s: float) -> None:
    assert arguments(plan(site, wait_s=wait_s))["bounds"]["requeue_s"] == requeue_s
    assert arguments(plan(site, settings=(), wait_s=wait_s))["bounds"]["requeue_s"] == 0.0


def test_stopping_the_scheduler_is_told_before(site: Site, snapshot: SnapshotAssertion) -> None:
    found = plan(site, disruptive=True)
    assert arguments(found)["disruptive"] is True
    assert found.steps[0].hosts[0].effects == snapshot


def test_a_site_without_a_scheduler_is_told(tmp_path: Path) -> None:
    site = load_site(write_site(tmp_path)).site
    with raises("scheduler-not-configured") as caught:
        SchedulerTest().require(site)
    assert (caught.value.exit_code, "--backend" in caught.value.remedy) == (ExitCode.USAGE, True)
    SchedulerTest(backend="default").require(site)
    assert arguments(plan(site, backend="default"))["backend"] == "default"


@pytest.mark.parametrize("words", [{"backend": "slurm"}, {"back_s": 1}, {"wait_s": 5}])
def test_arguments_are_bounded(words: Any) -> None:
    with pytest.raises(ValidationError):
        SchedulerTest(**words)


HIVED = "scheduler: {type: hived}\nvirtual-clusters: [{name: default, quota: [{sku: gpu, machines: 1}]}]\n"


def test_hived_is_tried_in_the_sites_own_virtual_clusters(
    tmp_path: Path, site: Site, snapshot: SnapshotAssertion
) -> None:
    own = load_site(write_site(tmp_path / "hived", layout=LAYOUT + WORKERS, services=HIVED)).site
    SchedulerTest().require(own)
    found = plan(own)
    kept = kept_of(arguments(found)["kept"])
    assert kept is not None
    assert (kept.backend, [one.name for one in kept.clusters]) == ("hived", ["default"])
    assert found.steps[0].hosts[0].reasons == snapshot
    with raises("scheduler-test-virtual-clusters-without-hived"):
        SchedulerTest(backend="hived").require(site)
