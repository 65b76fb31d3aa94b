"""What runs, where, why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pai_install.components.model import ComponentSet
from pai_install.parts.context import Context
from pai_install.parts.registry import make_context
from pai_install.plan.inventory import build_inventory
from pai_install.plan.model import Inventory, Plan
from pai_install.plan.observed import Membership, Observed, RoleRecord
from pai_install.plan.phases import PHASES
from pai_install.plan.planner import make_plan, new_machines
from pai_install.site import Site

from .conftest import CONFIG, LAYOUT, ROLES, converged


def bare(site: Site) -> dict[str, Observed]:
    """Machines on which nothing was ever done."""
    return {machine.hostname: Observed(hostname=machine.hostname) for machine in site.present_machines}


def names(plan: Plan) -> list[str]:
    """The planned phases."""
    return [phase.name for phase in plan.steps]


def test_bare_machines_get_every_phase_in_order(site: Site, inventory: Inventory, snapshot: SnapshotAssertion) -> None:
    plan = make_plan(site, inventory, bare(site))
    unasked = ("registries", "storage")  # the site names none
    assert names(plan) == [phase.name for phase in PHASES if phase.name not in unasked]
    hosts = {phase.name: [step.host for step in phase.hosts] for phase in plan.steps}
    assert hosts["base"] == ["master", "worker1", "worker2"]
    assert hosts["components"] == ["master"]
    assert hosts["control-plane"] == ["master"]
    assert hosts["workers"] == ["worker1", "worker2"]
    assert plan.steps[0].hosts[0].reasons == snapshot


def test_converged_machines_get_nothing(site: Site, inventory: Inventory) -> None:
    assert make_plan(site, inventory, converged(inventory)).empty


def test_labels_are_planned_where_the_layout_names_any_and_taken_off_where_it_no_longer_does(
    make_site: Callable[..., Site], components: ComponentSet, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    labelled = make_site(LAYOUT.replace("worker2, hostip: 10.0.0.3,", "worker2, hostip: 10.0.0.3, labels: {rack: r1},"))
    inventory = build_inventory(make_context(labelled, components, tmp_path), dict.fromkeys(ROLES, "1"))
    seen = converged(inventory)
    assert make_plan(labelled, inventory, seen).empty
    without = {role: record for role, record in seen["worker2"].roles.items() if role != "node_labels"}
    bare_node = {**seen, "worker2": seen["worker2"].model_copy(update={"roles": without})}
    step = make_plan(labelled, inventory, bare_node).steps[0]
    assert (step.name, [host.host for host in step.hosts]) == ("labels", ["worker2"])
    site = make_site()
    without_labels = build_inventory(make_context(site, components, tmp_path), dict.fromkeys(ROLES, "1"))
    step = make_plan(site, without_labels, seen).steps[0]
    assert (step.name, step.hosts[0].reasons) == snapshot


def test_device_plugin_that_is_switched_off_is_taken_away(
    make_site: Callable[..., Site], components: ComponentSet, inventory: Inventory, tmp_path: Path
) -> None:
    site = make_site(config=CONFIG + "nvidia_device_plugin: false\n")
    off = build_inventory(make_context(site, components, tmp_path), dict.fromkeys(ROLES, "1"))
    plan = make_plan(site, off, converged(inventory))
    steps = {phase.name: [(host.host, host.reasons) for host in phase.hosts] for phase in plan.steps}
    assert steps == {
        "runtime": [("worker1", ("settings changed: system_images_images",))],
        "labels": [("worker1", ("the site no longer asks for node_labels",))],
        "addons": [("master", ("the site no longer asks for addon.device_plugin",))],
    }
    (runtime,) = (step for step in plan.steps if step.name == "runtime")
    assert runtime.hosts[0].roles == ("system_images",), "what has no work there does not run"
    assert make_plan(site, off, converged(off)).empty


def test_changed_settings_of_add_ons_say_whose_they_are(site: Site, inventory: Inventory) -> None:
    """Several of them have an image, and all are applied on one machine."""
    seen = converged(inventory)
    roles = dict(seen["master"].roles)
    for name in ("addon.flannel", "addon.metrics_server"):
        reads = (f"the pods of {name}",)
        roles[name] = roles[name].model_copy(
            update={"settings": {**roles[name].settings, "image": "0"}, "readers": reads}
        )
    seen["master"] = seen["master"].model_copy(update={"roles": roles})
    (step,) = [
        step for phase in make_plan(site, inventory, seen).steps if phase.name == "network" for step in phase.hosts
    ]
    assert set(step.reasons) == {
        "settings of addon.flannel changed: image",
        "settings of addon.metrics_server changed: image",
    }
    assert set(step.effects) == {
        "may restart the pods of addon.flannel",
        "may restart the pods of addon.metrics_server",
    }


def test_newcomers_are_the_machines_where_no_role_was(site: Site, inventory: Inventory) -> None:
    seen = converged(inventory)
    assert new_machines(make_plan(site, inventory, bare(site)), bare(site)) == ("master", "worker1", "worker2")
    seen["worker2"] = Observed(hostname="worker2")
    assert new_machines(make_plan(site, inventory, seen), seen) == ("worker2",)


def test_drift_brings_one_phase_on_one_machine(site: Site, inventory: Inventory) -> None:
    seen = converged(inventory)
    roles = dict(seen["worker1"].roles)
    drifted = RoleRecord(settings=roles["base"].settings, drift=("/etc/sysctl.d/zz-pai-install.conf is missing",))
    seen["worker1"] = seen["worker1"].model_copy(update={"roles": {**roles, "base": drifted}})
    plan = make_plan(site, inventory, seen)
    assert names(plan) == ["base"]
    assert [(step.host, step.reasons) for step in plan.steps[0].hosts] == [
        ("worker1", ("/etc/sysctl.d/zz-pai-install.conf is missing",))
    ]


def test_changed_setting_is_named(
    make_site: Callable[..., Site], components: ComponentSet, inventory: Inventory, tmp_path: Path
) -> None:
    changed = make_site(config=CONFIG + "docker_log_max_size: 1g\n")
    digests = dict.fromkeys(ROLES, "1")
    after = build_inventory(make_context(changed, components, tmp_path / ".pai"), digests)
    plan = make_plan(changed, after, converged(inventory))
    assert names(plan) == ["runtime"]
    reasons = {step.reasons for step in plan.steps[0].hosts}
    assert reasons == {("settings changed: container_runtime_log_max_size",)}
    assert {step.roles for step in plan.steps[0].hosts} == {("container_runtime", "system_images")}
    asked = make_plan(changed, after, converged(inventory), phases=("runtime",))
    assert {step.roles for step in asked.steps[0].hosts} == {()}, "who names a phase gets all of it"


def with_kubelet_config(
    make_site: Callable[..., Site], components: ComponentSet, folder: Path
) -> tuple[Site, Inventory]:
    """The site with another kubelet_config, and its inventory."""
    site = make_site(config=CONFIG + "kubelet_config: {maxPods: 200}\n")
    return site, build_inventory(make_context(site, components, folder / ".pai"), dict.fromkeys(ROLES, "1"))


def test_changed_kubelet_config_reaches_the_workers_after_the_control_plane(
    make_site: Callable[..., Site], components: ComponentSet, inventory: Inventory, tmp_path: Path
) -> None:
    seen = converged(inventory)
    for host, role in (("worker1", "worker"), ("worker2", "worker"), ("master", "control_plane")):
        records = seen[host].roles
        reads = records[role].model_copy(update={"readers": ("kubelet.service",)})
        seen[host] = seen[host].model_copy(update={"roles": {**records, role: reads}})
    changed, after = with_kubelet_config(make_site, components, tmp_path)
    plan = make_plan(changed, after, seen)
    assert work_of(plan) == {"master": ["control-plane"], "worker1": ["workers"], "worker2": ["workers"]}
    reasons = {step.reasons for step in plan.steps[1].hosts}
    assert reasons == {("settings changed: worker_kubelet_config",)}
    assert {step.effects for phase in plan.steps for step in phase.hosts} == {("restarts kubelet.service",)}


def test_limit_brings_the_control_plane_that_gives_a_changed_kubelet_config(
    make_site: Callable[..., Site], components: ComponentSet, inventory: Inventory, tmp_path: Path
) -> None:
    """A worker that read the former one would be recorded as having the new one."""
    changed, after = with_kubelet_config(make_site, components, tmp_path)
    plan = make_plan(changed, after, converged(inventory), limit=["worker2"])
    assert work_of(plan) == {"master": ["control-plane"], "worker2": ["workers"]}


def test_limit_on_another_control_plane_brings_the_leader_that_gives_a_changed_kubelet_config(
    make_site: Callable[..., Site], components: ComponentSet, tmp_path: Path
) -> None:
    """Only the leader writes it into the cluster, where the others read it."""
    masters = LAYOUT.replace('pai-worker: "true"', 'pai-worker: "true", pai-master: "true"')
    digests = dict.fromkeys(ROLES, "1")
    before = build_inventory(make_context(make_site(masters), components, tmp_path / ".pai"), digests)
    changed = make_site(masters, CONFIG + "kubelet_config: {maxPods: 200}\n")
    after = build_inventory(make_context(changed, components, tmp_path / ".pai"), digests)
    plan = make_plan(changed, after, converged(before), limit=["worker2"])
    assert work_of(plan) == {"master": ["control-plane"], "worker2": ["control-plane"]}


def test_new_version_of_a_role_runs_again(
    site: Site, context: Context, inventory: Inventory, snapshot: SnapshotAssertion
) -> None:
    newer = build_inventory(context, {**dict.fromkeys(ROLES, "1"), "time_sync": "2"})
    plan = make_plan(site, newer, converged(inventory))
    assert names(plan) == ["time"]
    assert plan.steps[0].hosts[0].reasons == snapshot


def test_machine_that_left_the_cluster_joins_again(site: Site, inventory: Inventory) -> None:
    seen = converged(inventory)
    seen["worker2"] = seen["worker2"].model_copy(update={"kubernetes": Membership(node=False)})
    plan = make_plan(site, inventory, seen)
    assert names(plan) == ["workers"]
    assert [step.host for step in plan.steps[0].hosts] == ["worker2"]


def test_unreachable_machine_has_no_work_and_is_named(site: Site, inventory: Inventory) -> None:
    seen = bare(site)
    del seen["worker1"]
    plan = make_plan(site, inventory, seen, unreachable={"worker1": "no route"})
    assert all(step.host != "worker1" for phase in plan.steps for step in phase.hosts)
    assert plan.unreachable == {"worker1": "no route"}


def work_of(plan: Plan) -> dict[str, list[str]]:
    """Machine -> the phases that it has work in."""
    hosts = dict.fromkeys(step.host for phase in plan.steps for step in phase.hosts)
    return {host: [phase.name for phase in plan.steps if host in phase.names] for host in hosts}


NEW_WORKER = ["base", "time", "runtime", "workers"]


@pytest.mark.parametrize("changed", [(), ("container_runtime",), ("control_plane", "pod_network")])
def test_limit_touches_no_other_machine(site: Site, inventory: Inventory, changed: tuple[str, ...]) -> None:
    """Nor are settings applied on others that were changed meanwhile."""
    seen = {**converged(inventory), "worker2": bare(site)["worker2"]}
    roles = {role: RoleRecord(settings={}) if role in changed else it for role, it in seen["master"].roles.items()}
    seen["master"] = seen["master"].model_copy(update={"roles": roles})
    assert work_of(make_plan(site, inventory, seen, limit=["worker2"])) == {"worker2": NEW_WORKER}


def test_limit_brings_the_store_up_to_what_the_machine_asks_it_for(site: Site, inventory: Inventory) -> None:
    seen = {**converged(inventory), "worker2": bare(site)["worker2"]}
    roles = {**seen["master"].roles, "component_store": RoleRecord(settings={"component_store_files": "older"})}
    seen["master"] = seen["master"].model_copy(update={"roles": roles})
    plan = make_plan(site, inventory, seen, limit=["worker2"])
    assert work_of(plan) == {"worker2": NEW_WORKER, "master": ["components"]}
    store = next(step for step in plan.steps if step.name == "components")
    assert store.hosts[0].reasons[0] == "needed by worker2"
    assert store.hosts[0].reasons[1].startswith("settings changed: component_store_files")


def test_limit_brings_a_control_plane_that_cannot_let_anybody_join(site: Site, inventory: Inventory) -> None:
    seen = {**converged(inventory), "worker2": bare(site)["worker2"]}
    broken = RoleRecord(settings=seen["master"].roles["control_plane"].settings, drift=("a manifest is missing",))
    roles = {**seen["master"].roles, "control_plane": broken}
    seen["master"] = seen["master"].model_copy(update={"roles": roles})
    assert work_of(make_plan(site, inventory, seen, limit=["worker2"])) == {
        "worker2": NEW_WORKER,
        "master": ["control-plane"],
    }


def test_limit_on_bare_machines_brings_all_that_makes_the_cluster(site: Site, inventory: Inventory) -> None:
    work = work_of(make_plan(site, inventory, bare(site), limit=["worker2"]))
    assert work == {"worker2": NEW_WORKER, "master": ["base", "time", "components", "runtime", "control-plane"]}
    only = make_plan(site, inventory, bare(site), limit=["worker2"], phases=["base"])
    assert work_of(only) == {"worker2": ["base"]}


def test_phase_by_name_runs_on_its_machines_anyway(site: Site, inventory: Inventory) -> None:
    plan = make_plan(site, inventory, converged(inventory), phases=["time"])
    assert names(plan) == ["time"]
    assert {step.reasons for step in plan.steps[0].hosts} == {("asked for",)}


def test_absent_machine_is_left_out(make_site: Callable[..., Site], components: ComponentSet, tmp_path: Path) -> None:
    site = make_site(
        layout="""
machine-sku: {cpu: {mem: 8Gi, cpu: {vcore: 4}}}
machine-list:
  - {hostname: master, hostip: 10.0.0.1, machine-type: cpu, pai-master: "true"}
  - {hostname: worker1, hostip: 10.0.0.2, machine-type: cpu, pai-worker: "true"}
  - {hostname: worker2, hostip: 10.0.0.3, machine-type: cpu, pai-worker: "true", absent: true}
"""
    )
    inventory = build_inventory(make_context(site, components, tmp_path / ".pai"), {})
    assert "worker2" not in inventory.host_vars
    plan = make_plan(site, inventory, bare(site))
    assert all(step.host != "worker2" for phase in plan.steps for step in phase.hosts)


@given(data=st.data())
def test_plan_holds_exactly_the_work_that_was_seen(data: st.DataObject, site: Site, inventory: Inventory) -> None:
    """Any mixture of missing records and drift: each phase has exactly the machines with a reason, in order."""
    seen = converged(inventory)
    broken = set()
    for machine in site.present_machines:
        host = machine.hostname
        records = dict(seen[host].roles)
        for role in data.draw(st.sets(st.sampled_from(sorted(set(records) - {"cluster_verify"})))):
            broken.add((host, role))
            records[role] = RoleRecord(settings=records[role].settings, drift=("x",))
        seen[host] = seen[host].model_copy(update={"roles": records})
    plan = make_plan(site, inventory, seen)
    expected = [
        (
            phase.name,
            [machine.hostname for machine in phase.machines(site) if _any(machine.hostname, phase.records(()), broken)],
        )
        for phase in PHASES
    ]
    planned = [(phase.name, [step.host for step in phase.hosts]) for phase in plan.steps]
    assert planned == [(name, hosts) for name, hosts in expected if hosts]


def _any(host: str, roles: tuple[str, ...], broken: set[tuple[str, str]]) -> bool:
    return any((host, role) in broken for role in roles)
