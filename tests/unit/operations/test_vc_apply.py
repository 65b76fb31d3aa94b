"""What `vc apply` does of all that an installation would do, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.components.model import ComponentSet
from pai_install.errors import ExitCode
from pai_install.operations.vc_apply import VcApply, VcRestore, VcVerify
from pai_install.parts.compiled import COMPILED
from pai_install.parts.registry import PARTS, make_context
from pai_install.plan.inventory import build_inventory
from pai_install.plan.model import ClusterCalls, Inventory, LocalWork, Plan, Playbook
from pai_install.plan.observation import Observation
from pai_install.plan.observed import Observed
from pai_install.schedulers.compile import labels_of
from pai_install.schedulers.hived.self_test import programme
from pai_install.schedulers.last_applied import kept_of
from pai_install.schedulers.registry import backend_of
from pai_install.schedulers.self_test.manifests import scenarios
from pai_install.schedulers.self_test.model import Scenario
from pai_install.schedulers.self_test.scenarios import Bounds
from pai_install.scheduling.model import BACKENDS, Backend
from pai_install.site import Site
from tests.errors import raises
from tests.unit.plan.conftest import LAYOUT, ROLES, converged
from tests.unit.schedulers.hived.test_self_test import nodes
from tests.virtual_clusters import cluster, gpus, share
from tests.virtual_clusters import site as divided

SERVICES = """\
scheduler: {type: kueue}
virtual-clusters: [{name: default, quota: [{sku: gpu, devices: 4}]}]
"""
PINNED = SERVICES.replace("devices: 4}]", "devices: 4}], pinned: [w2]").replace("devices: 4", "devices: 3")
WORKERS = LAYOUT + '  - {hostname: w2, hostip: 10.0.0.4, machine-type: gpu, pai-worker: "true"}\n'
GROUPS = "authentication: {group-manager: {grouplist: [{groupname: vision}]}}\n"


@pytest.fixture
def inventory_of(make_site: Callable[..., Site], components: ComponentSet, tmp_path: Path) -> Any:
    """Services -> the site and its inventory."""

    def made(services: str) -> tuple[Site, Inventory]:
        site = make_site(layout=WORKERS, services=services)
        return site, build_inventory(make_context(site, components, tmp_path), dict.fromkeys(ROLES, "1"))

    return made


def planned(
    of: Any, before: str, after: str, change: Callable[[dict[str, Observed]], Any] = lambda _: None, **words: Any
) -> Plan:
    """The plan for machines that are as the site was before."""
    seen = converged(of(before)[1])
    lost = change(seen) or {}
    site, inventory = of(after)
    return VcApply(**words).plan(site, Observation(inventory, seen, lost))


def names(plan: Plan) -> dict[str, list[str]]:
    return {step.name: list(step.names) for step in plan.steps}


def test_another_quota_is_the_add_ons_and_the_leader_alone(inventory_of: Any, snapshot: SnapshotAssertion) -> None:
    plan = planned(inventory_of, SERVICES, SERVICES.replace("devices: 4", "devices: 8"))
    leader = ["master"]
    assert names(plan) == {"addons": leader, "virtual-clusters": leader}
    addons, look = plan.steps
    changed = ["virtual_clusters"]
    assert addons.action == Playbook("addons.yml", {"cluster_addons_only": changed}), "others stay untouched"
    (host,) = addons.hosts
    assert host.reasons == snapshot
    assert host.roles == ("cluster_addons",)
    assert isinstance(look.action, LocalWork)
    kept = kept_of(look.action.arguments["kept"])
    assert kept is not None
    assert kept.cluster("default").shares[0].units == 8
    assert look.looks


def test_a_pinned_machine_gets_its_label(inventory_of: Any) -> None:
    plan = planned(inventory_of, SERVICES, PINNED)
    assert list(names(plan)) == ["labels", "addons", "virtual-clusters"]
    assert names(plan)["labels"] == ["w2"]


def test_nothing_to_do_asks_no_one_but_after_a_run_that_did_not_end(inventory_of: Any) -> None:
    plan = planned(inventory_of, SERVICES, SERVICES)
    assert (plan.steps, plan.nothing) == ((), "the cluster has these virtual clusters already")
    again = planned(inventory_of, SERVICES, SERVICES, unproven=True)
    assert names(again) == {"virtual-clusters": ["master"]}
    assert again.steps[0].hosts[0].reasons[0].startswith("the last run did not come to its end; ")


def drift(host: str, role: str) -> Callable[[dict[str, Observed]], None]:
    """A hand-made change of what a role made."""

    def change(seen: dict[str, Observed]) -> None:
        record = seen[host].roles[role].model_copy(update={"drift": (f"{role} was changed by hand",)})
        seen[host] = seen[host].model_copy(update={"roles": {**seen[host].roles, role: record}})

    return change


def test_a_scheduler_that_was_changed_by_hand_is_put_right(inventory_of: Any, snapshot: SnapshotAssertion) -> None:
    plan = planned(inventory_of, SERVICES, SERVICES, drift("master", "addon.kueue"))
    assert plan.steps[0].hosts[0].reasons == snapshot


def test_other_add_ons_and_later_phases_are_left_to_apply(inventory_of: Any, snapshot: SnapshotAssertion) -> None:
    assert planned(inventory_of, SERVICES, SERVICES, drift("master", "addon.device_plugin")).empty
    changed = planned(
        inventory_of, SERVICES, SERVICES.replace("devices: 4", "devices: 8"), drift("master", "addon.device_plugin")
    )
    assert changed.steps[0].hosts[0].reasons == snapshot


def test_what_only_measures_is_left_to_apply(inventory_of: Any) -> None:
    """metrics-server is in an earlier phase, and no virtual cluster stands on it."""
    changed = drift("master", "addon.metrics_server")
    plan = planned(inventory_of, SERVICES, SERVICES.replace("devices: 4", "devices: 8"), changed)
    assert list(names(plan)) == ["addons", "virtual-clusters"]


@pytest.mark.parametrize(
    ("after", "change", "said"),
    [
        (SERVICES, drift("w2", "base"), "base: w2: base was changed by hand"),
        (SERVICES, drift("master", "addon.flannel"), "network: master: addon.flannel was changed by hand"),
        (SERVICES + GROUPS, lambda _: None, "addons: addon.groups is not installed"),
    ],
)
def test_what_they_stand_on_comes_first_by_apply(inventory_of: Any, after: str, change: Any, said: str) -> None:
    with raises("scheduler-not-applied") as caught:
        planned(inventory_of, SERVICES, after, change)
    assert said in caught.value.details
    assert (caught.value.remedy, caught.value.exit_code) == ("run pai-install apply", ExitCode.PREFLIGHT_FAILED)


@pytest.mark.parametrize(
    ("before", "after"), [("", "cores: 1"), ("cores: 1", "cores: 2"), ("cores: 2", "")], ids=["new", "other", "gone"]
)
def test_a_limit_of_pods_outside_queues_needs_no_apply(inventory_of: Any, before: str, after: str) -> None:
    """The quota of each group changes, and with a limit that is new or gone the policies, too."""
    old, new = (f"jobs: {{unqueued: {{{cores}, memory: 1Gi}}}}\n" if cores else "" for cores in (before, after))
    plan = planned(inventory_of, SERVICES + GROUPS + old, SERVICES + GROUPS + new)
    addons, _look = plan.steps
    assert isinstance(addons.action, Playbook)
    assert set(addons.action.variables["cluster_addons_only"]) == {"groups", "virtual_clusters"}


@pytest.mark.parametrize("backend", ["kueue", "volcano", "hived"])
def test_a_new_virtual_cluster_needs_no_apply_where_a_site_has_groups(inventory_of: Any, backend: str) -> None:
    services = SERVICES.replace("kueue", backend) + GROUPS
    more = services.replace("[{name: default", "[{name: extra}, {name: default")
    plan = planned(inventory_of, services, more)
    (addons,) = [step for step in plan.steps if step.name == "addons"]
    assert isinstance(addons.action, Playbook)
    assert "groups" in addons.action.variables["cluster_addons_only"]
    assert [step.name for step in plan.steps][-1] == "virtual-clusters"


CHANGES = {
    "smaller quota": SERVICES,
    "larger quota": SERVICES.replace("devices: 4", "devices: 12"),
    "new virtual cluster": SERVICES.replace(
        "[{name: default", "[{name: extra, quota: [{sku: gpu, devices: 2}]}, {name: default"
    ),
    "pinned machine": SERVICES.replace("devices: 4}]", "devices: 8}], pinned: [w2]"),
}


def played(backend: Backend, plan: Plan) -> list[Scenario]:
    """The scenarios of a proof, on machines that are ready and idle."""
    (step,) = plan.steps
    assert isinstance(step.action, LocalWork)
    bounds = Bounds(**step.action.arguments["bounds"])
    if backend == "hived":
        kept = kept_of(step.action.arguments["kept"])
        assert kept is not None
        known = [act.scenario for act in programme(kept, nodes(kept), (), bounds).acts]
    else:
        known = list(scenarios(backend, bounds))
    return [one for one in known if one.name in step.action.arguments["scenarios"]]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("backend", "pods"), [("default", 3), ("kueue", 3), ("volcano", 3), ("hived", 5)])
def test_proof_of_a_change_is_one_queue_and_its_quota(
    inventory_of: Any, backend: Backend, pods: int, change: str
) -> None:
    """No node, no runtime, and no other guarantee: a change of quota touches none of them."""
    before = SERVICES.replace("devices: 4", "devices: 8").replace("kueue", backend)
    after = CHANGES[change].replace("kueue", backend)
    changed = tuple(
        host for step in planned(inventory_of, before, after).steps if not step.looks for host in step.names
    )
    assert changed
    site, inventory = inventory_of(after)
    proof = VcVerify(machines=changed).plan(site, Observation(inventory, {}, unproven={"master": "an earlier run"}))
    assert [(step.name, step.names) for step in proof.steps] == [("scheduler-test", changed)]
    (quota,) = played(backend, proof)
    assert quota.checks == ("scheduler-quota",)
    assert (len(quota.queues), sum(gang.size for gang in quota.gangs.values())) == (1, pods)
    assert proof.proves_own, "a short proof ends no debt of an installation"


def test_another_scheduler_comes_by_a_switch(inventory_of: Any) -> None:
    with raises("scheduler-differs") as caught:
        planned(inventory_of, SERVICES, SERVICES.replace("kueue", "volcano"))
    assert "scheduler switch" in str(caught.value.remedy)
    assert caught.value.exit_code == ExitCode.PREFLIGHT_FAILED


def test_labels_are_not_set_where_the_objects_cannot_follow(inventory_of: Any) -> None:
    def lose(seen: dict[str, Observed]) -> dict[str, str]:
        del seen["master"]
        return {"master": "no route to host"}

    with raises("leader-unreachable", "master") as caught:
        planned(inventory_of, SERVICES, PINNED, lose)
    assert caught.value.exit_code == ExitCode.UNREACHABLE


def test_a_worker_that_does_not_answer_stops_nothing(inventory_of: Any) -> None:
    def lose(seen: dict[str, Observed]) -> dict[str, str]:
        del seen["w2"]
        return {"w2": "no route to host"}

    plan = planned(inventory_of, SERVICES, PINNED, lose)
    assert list(names(plan)) == ["addons", "virtual-clusters"]
    assert plan.unreachable == {"w2": "no route to host"}


def test_every_scheduler_has_its_add_ons() -> None:
    known = {part.name.removeprefix("addon.") for part in PARTS if part.name.startswith("addon.")}
    for names_of_one in (backend_of(name).addons for name in BACKENDS):
        assert set(names_of_one) <= known & set(COMPILED)


SUPPLY = gpus("a100", 4)
GOOD = divided(SUPPLY, clusters=(cluster("a", share(SUPPLY, 16)), cluster("b", share(SUPPLY, 8))))
TRIED = divided(SUPPLY, clusters=(cluster("a", share(SUPPLY, 8)), cluster("new", pinned=("a100-4",))))


def test_the_way_back_is_labels_objects_and_what_was_new(make_site: Callable[..., Site]) -> None:
    nodes = tuple({"metadata": {"name": name, "labels": labels}} for name, labels in labels_of(TRIED).items())
    site = make_site(services=SERVICES)
    operation = VcRestore(good=GOOD, tried=TRIED)
    assert operation.arguments == {}
    plan = operation.plan(site, Observation(Inventory({}, {}, {}), {}, answers=(nodes,)))
    back, look = plan.steps
    assert isinstance(back.action, ClusterCalls)
    label, objects, gone = back.action.calls
    assert (label.verb, label.arguments["name"]) == ("patch", "a100-4")
    assert objects.verb == "apply"
    assert [it["metadata"]["name"] for it in objects.arguments["objects"] if it["kind"] == "ClusterQueue"] == ["a", "b"]
    assert gone.verb == "delete"
    new = {"kind": "clusterqueue.v1beta2.kueue.x-k8s.io", "name": "new", "namespace": ""}
    assert new in gone.arguments["refs"]
    assert isinstance(look.action, LocalWork)
    assert kept_of(look.action.arguments["kept"]) == GOOD
    assert {*plan.hosts} == {"master"}


def test_where_nothing_was_new_nothing_is_taken_away(make_site: Callable[..., Site]) -> None:
    site = make_site(services=SERVICES)
    tried = replace(GOOD, clusters=GOOD.clusters[:1])
    plan = VcRestore(good=GOOD, tried=tried).plan(site, Observation(Inventory({}, {}, {}), {}, answers=((),)))
    assert isinstance(plan.steps[0].action, ClusterCalls)
    assert [call.verb for call in plan.steps[0].action.calls] == ["apply"]
