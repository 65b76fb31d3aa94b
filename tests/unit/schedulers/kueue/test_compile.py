"""Virtual clusters as Kueue's objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from syrupy.assertion import SnapshotAssertion

from pai_install.schedulers.compile import labels_of, objects_of, remarks
from pai_install.schedulers.kueue import compile as kueue
from pai_install.scheduling.model import Level, Scheduling
from tests.unit.scheduling.sites import divided_sites
from tests.virtual_clusters import cluster, gpus, mixed, pinned, quick_start, racks, share, site, two_teams


def named(scheduling: Scheduling, kind: str, name: str) -> dict[str, Any]:
    (found,) = [it for it in objects_of(scheduling) if (it["kind"], it["metadata"]["name"]) == (kind, name)]
    return found


def quotas(queue: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, str]]:
    """Flavor and resource -> what stands there but for the name."""
    return {
        (flavor["name"], it["name"]): {key: value for key, value in it.items() if key != "name"}
        for group in queue["spec"]["resourceGroups"]
        for flavor in group["flavors"]
        for it in flavor["resources"]
    }


def test_lending_and_borrowing_are_limits_of_the_queue() -> None:
    found = quotas(named(two_teams(), "ClusterQueue", "product"))
    assert found["a100", "nvidia.com/gpu"] == {"nominalQuota": "12", "lendingLimit": "6", "borrowingLimit": "12"}


def test_without_a_limit_whatever_is_idle_is_borrowed() -> None:
    found = quotas(named(two_teams(), "ClusterQueue", "research"))
    assert "borrowingLimit" not in found["a100", "nvidia.com/gpu"]


def test_what_no_one_is_guaranteed_is_the_cohorts() -> None:
    assert quotas(named(two_teams(), "Cohort", "pai"))["a100", "nvidia.com/gpu"] == {"nominalQuota": "4"}


def test_only_namespaces_of_its_groups_may_submit() -> None:
    queue = named(two_teams(), "ClusterQueue", "research")
    (within,) = queue["spec"]["namespaceSelector"]["matchExpressions"]
    assert within["values"] == ["vision", "nlp"]
    places = [it["metadata"]["namespace"] for it in objects_of(two_teams()) if it["kind"] == "LocalQueue"]
    assert places == ["vision", "nlp", "product"]


def test_a_queue_of_no_group_lets_no_one_in() -> None:
    assert "namespaceSelector" not in named(mixed(), "ClusterQueue", "closed")["spec"]


def test_machines_of_ones_own_are_a_flavor_that_no_other_queue_names() -> None:
    owners = {
        it["metadata"]["name"]
        for it in objects_of(pinned())
        if it["kind"] in ("ClusterQueue", "Cohort") and any(flavor == "a100.of.lab" for flavor, _ in quotas(it))
    }
    assert owners == {"lab"}
    limits = quotas(named(pinned(), "ClusterQueue", "lab"))["a100.of.lab", "nvidia.com/gpu"]
    assert limits == {"nominalQuota": "8", "lendingLimit": "0", "borrowingLimit": "0"}


def test_a_machine_is_of_exactly_one_flavor() -> None:
    labels = labels_of(pinned())
    flavors = [it for it in objects_of(pinned()) if it["kind"] == "ResourceFlavor"]
    for machine, has in labels.items():
        fitting = [it for it in flavors if it["spec"]["nodeLabels"].items() <= has.items()]
        assert len(fitting) == 1, machine


def test_its_own_machines_come_before_those_of_all() -> None:
    names = [flavor for flavor, _ in quotas(named(pinned(), "ClusterQueue", "research"))]
    assert list(dict.fromkeys(names)) == ["a100.of.research", "a100", "v100.of.research"]


def test_jobs_without_devices_are_tried_on_machines_without_first() -> None:
    names = [flavor for flavor, _ in quotas(named(mixed(), "Cohort", "pai"))]
    assert names[0] == "cpu"


def test_other_levels_are_another_topology_and_other_flavors() -> None:
    """Kueue refuses to change either: what is named the same has to be the same."""
    other = replace(racks(), levels=(Level("rack", "example.com/row"),))
    for kind in ("Topology", "ResourceFlavor"):
        names = [{it["metadata"]["name"] for it in objects_of(at) if it["kind"] == kind} for at in (racks(), other)]
        assert not names[0] & names[1]
    assert kueue.topology_name(quick_start()) == "pai"
    levels = named(racks(), "Topology", kueue.topology_name(racks()))["spec"]["levels"]
    assert [it["nodeLabel"] for it in levels] == [
        "example.com/rack",
        "example.com/nvlink-domain",
        "kubernetes.io/hostname",
    ]


def test_a_level_that_is_only_called_otherwise_changes_nothing() -> None:
    other = replace(racks(), levels=tuple(Level(f"{it.name}-2", it.label) for it in racks().levels))
    made, before = ([it for it in objects_of(at) if it["kind"] != "ConfigMap"] for at in (other, racks()))
    assert made == before


@pytest.mark.parametrize(("sku", "name"), [("a100", "a100"), ("a.b-1", "a.b-1")])
def test_names_that_kubernetes_takes_stay(sku: str, name: str) -> None:
    assert kueue.flavor_name(quick_start(), sku) == name


def test_names_that_become_the_same_stay_two() -> None:
    skus = ("A100_80G", "a100-80G", "a100_80g", "___", "...")
    names = {kueue.flavor_name(quick_start(), sku) for sku in skus}
    assert len(names) == len(skus)
    assert all(name.strip("-.") == name for name in names)


def test_an_sku_that_no_one_has_is_told(snapshot: SnapshotAssertion) -> None:
    assert remarks(mixed()) == snapshot


def test_without_namespaces_nothing_is_refused() -> None:
    supply = gpus("a100", 1)
    scheduling = site(supply, clusters=(cluster("a", share(supply, 8), groups=()),))
    assert not [it for it in objects_of(scheduling) if "Policy" in it["kind"]]


def test_priorities_above_the_highest_are_not_in_the_policy(snapshot: SnapshotAssertion) -> None:
    (policy,) = [it for it in objects_of(two_teams()) if it["metadata"]["name"] == "pai-queued-jobs"][:1]
    variables = {it["name"]: it["expression"] for it in policy["spec"]["variables"]}
    assert variables["allowed"] == snapshot


@given(divided_sites())
@settings(max_examples=60, deadline=None)
def test_what_kueues_webhooks_refuse_is_never_made(scheduling: Scheduling) -> None:
    for it in objects_of(scheduling):
        if it["kind"] in ("ClusterQueue", "Cohort"):
            for group in it["spec"]["resourceGroups"]:
                for flavor in group["flavors"]:
                    assert [quota["name"] for quota in flavor["resources"]] == group["coveredResources"]
        if it["kind"] == "Cohort":
            assert not any({"lendingLimit", "borrowingLimit"} & set(quota) for quota in quotas(it).values())


@given(divided_sites())
@settings(max_examples=60, deadline=None)
def test_all_quotas_of_a_flavor_are_the_devices_of_its_machines(scheduling: Scheduling) -> None:
    labels = labels_of(scheduling)
    found: dict[str, int] = {}
    for it in objects_of(scheduling):
        if it["kind"] in ("ClusterQueue", "Cohort"):
            for (flavor, resource), quota in quotas(it).items():
                if resource not in ("cpu", "memory"):
                    found[flavor] = found.get(flavor, 0) + int(quota["nominalQuota"])
    for it in objects_of(scheduling):
        if it["kind"] == "ResourceFlavor" and it["metadata"]["name"] in found:
            machines = [name for name, has in labels.items() if it["spec"]["nodeLabels"].items() <= has.items()]
            units = sum(scheduling.supply[scheduling.skus[name]].units for name in machines)
            devices = units if scheduling.supply[it["spec"]["nodeLabels"]["pai-install/sku"]].resource else 0
            assert found[it["metadata"]["name"]] == devices
