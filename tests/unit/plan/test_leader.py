"""Who lets machines into the cluster: any control plane that answers, never one outside of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from pai_install.components.model import ComponentSet
from pai_install.parts.registry import make_context
from pai_install.plan.inventory import build_inventory
from pai_install.plan.leader import LEADER_VARIABLES, leader_of, with_leader
from pai_install.plan.model import Inventory, Playbook
from pai_install.plan.observed import Membership, Observed, RoleRecord
from pai_install.plan.planner import make_plan
from pai_install.site import Site

LAYOUT = """
machine-sku:
  cpu: {mem: 8Gi, cpu: {vcore: 4}}
machine-list:
  - {hostname: a, hostip: 10.0.0.1, machine-type: cpu, pai-master: "true"}
  - {hostname: b, hostip: 10.0.0.2, machine-type: cpu, pai-master: "true"}
  - {hostname: c, hostip: 10.0.0.3, machine-type: cpu, pai-master: "true"}
  - {hostname: w, hostip: 10.0.0.4, machine-type: cpu, pai-worker: "true"}
"""
MEMBER = Membership(control_plane=True, node=True, joined=True)
HALF = Membership(control_plane=True, node=True)
NEW = Membership()


@pytest.fixture
def three(make_site: Callable[..., Site]) -> Site:
    """Three control planes and a worker."""
    return make_site(LAYOUT)


@pytest.fixture
def inventory(three: Site, components: ComponentSet) -> Inventory:
    """Of the three."""
    return build_inventory(make_context(three, components, three.directory / ".pai"), {})


def seen(**memberships: Membership) -> Mapping[str, Observed]:
    """Machines as they were observed."""
    return {name: Observed(hostname=name, kubernetes=membership) for name, membership in memberships.items()}


@pytest.mark.parametrize(
    ("observed", "leader"),
    [
        (seen(a=MEMBER, b=MEMBER, c=MEMBER), "a"),
        (seen(b=MEMBER, c=MEMBER), "b"),  # the first does not answer
        (seen(a=NEW, b=MEMBER, c=MEMBER), "b"),  # the first was installed anew
        (seen(a=MEMBER, b=HALF), "a"),
        (seen(b=HALF, c=MEMBER), "c"),  # a join that was cut off is no membership
        (seen(b=HALF, w=Membership(node=True, joined=True)), "a"),  # nobody may make a second cluster
        (seen(a=NEW, b=NEW, c=NEW), "a"),
        ({}, "a"),
    ],
)
def test_leader(three: Site, observed: Mapping[str, Observed], leader: str) -> None:
    assert leader_of(three, observed) == leader


def test_every_variable_names_the_leader(three: Site, inventory: Inventory) -> None:
    plan = make_plan(three, inventory, seen(b=MEMBER, c=MEMBER, w=NEW))
    for host in ("b", "c"):
        assert {**plan.inventory.shared_vars, **plan.inventory.host_vars[host]}["control_plane_leader"] == "b"
    assert plan.inventory.host_vars["w"]["worker_leader"] == "b"
    assert plan.inventory.shared_vars["cluster_verify_leader"] == "b"


def test_nothing_else_changes(inventory: Inventory) -> None:
    other = with_leader(inventory, "c")
    assert other.groups == inventory.groups
    for host, values in inventory.host_vars.items():
        assert other.host_vars[host].keys() == values.keys()
        assert all(other.host_vars[host][name] == values[name] for name in values.keys() - LEADER_VARIABLES)
    assert with_leader(other, "a") == inventory


def test_another_leader_is_no_change_of_settings(inventory: Inventory) -> None:
    for values in (inventory.shared_vars, *inventory.host_vars.values()):
        for digests in values.get("pai_settings", {}).values():
            assert not LEADER_VARIABLES & digests.keys()


@pytest.mark.parametrize(
    ("memberships", "leader"),
    [
        ({"a": NEW, "b": NEW, "c": NEW}, "a"),
        ({"a": NEW, "b": MEMBER, "c": MEMBER}, "b"),  # the first was installed anew
    ],
)
def test_the_phase_of_control_planes_begins_with_the_leader(
    three: Site, inventory: Inventory, memberships: Mapping[str, Membership], leader: str
) -> None:
    plan = make_plan(three, inventory, seen(**memberships))
    (step,) = (one for one in plan.steps if one.name == "control-plane")
    assert step.action == Playbook("control-plane.yml", {"pai_leader": leader})


def test_what_one_applied_while_it_was_the_first_is_the_first_ones_now(three: Site, inventory: Inventory) -> None:
    """It has the records still: nothing is taken away for them, and the plan is not in need of them for ever."""
    digests = {name: RoleRecord(settings=dict(settings)) for name, settings in inventory.settings_of("a").items()}
    was_first = Observed(hostname="c", kubernetes=MEMBER, roles=digests)
    plan = make_plan(three, inventory, {**seen(a=MEMBER, b=MEMBER), "c": was_first})
    for step in plan.steps:
        for host in step.hosts:
            assert host.host != "c" or not [why for why in host.reasons if "addon." in why], (step.name, host.reasons)
