"""Virtual clusters with Kubernetes' own scheduler: a quota per namespace."""

from __future__ import annotations

from hypothesis import given, settings
from syrupy.assertion import SnapshotAssertion

from pai_install.schedulers.compile import labels_of, objects_of, remarks
from pai_install.scheduling.model import Scheduling
from tests.unit.scheduling.sites import divided_sites
from tests.virtual_clusters import CASES, cpu_only, mixed, pinned, quick_start, racks, two_teams, with_backend


def quotas(scheduling: Scheduling) -> dict[str, dict[str, str]]:
    """Namespace -> its limits."""
    return {
        it["metadata"]["namespace"]: it["spec"]["hard"]
        for it in objects_of(with_backend(scheduling, "default"))
        if it["kind"] == "ResourceQuota"
    }


def told(scheduling: Scheduling) -> str:
    return "\n".join(remarks(with_backend(scheduling, "default")))


def test_the_quota_of_one_group_is_the_whole() -> None:
    assert quotas(two_teams())["product"] == {"requests.nvidia.com/gpu": "12"}


def test_the_quota_of_several_groups_is_divided(snapshot: SnapshotAssertion) -> None:
    found = quotas(two_teams())
    assert (found["vision"], found["nlp"]) == ({"requests.nvidia.com/gpu": "8"}, {"requests.nvidia.com/gpu": "8"})
    assert told(two_teams()) == snapshot


def test_a_namespace_of_several_virtual_clusters_has_the_sum_of_its_parts() -> None:
    """team-a has half of default, with what cannot be halved gone to the other group, and all of asia."""
    found = quotas(mixed())["team-a"]
    assert found == {"requests.nvidia.com/gpu": "12", "requests.huawei.com/Ascend910": "16"}


def test_cores_are_counted_only_where_they_are_shared(snapshot: SnapshotAssertion) -> None:
    found = quotas(cpu_only())
    assert found["batch"] == {
        "requests.nvidia.com/gpu": "0",
        "requests.cpu": "100",
        "requests.memory": "300Gi",
    }
    assert found["default"] == {"requests.nvidia.com/gpu": "16"}
    limits = [it for it in objects_of(with_backend(cpu_only(), "default")) if it["kind"] == "LimitRange"]
    assert [it["metadata"]["namespace"] for it in limits] == ["batch", "guests"]
    assert told(cpu_only()) == snapshot


def test_what_is_only_borrowed_is_nothing() -> None:
    assert quotas(cpu_only())["guests"]["requests.cpu"] == "0"


def test_no_pod_takes_the_place_of_another() -> None:
    classes = [it for it in objects_of(with_backend(quick_start(), "default")) if it["kind"] == "PriorityClass"]
    assert {it["preemptionPolicy"] for it in classes} == {"Never"}
    assert [it["value"] for it in classes] == [120, 100, 10, -1]


def test_what_it_cannot_keep_is_told(snapshot: SnapshotAssertion) -> None:
    assert told(pinned()) == snapshot
    assert told(pinned()) == snapshot
    assert told(racks()) == snapshot
    assert told(mixed()) == snapshot
    assert "nothing is lent" in told(two_teams())


def test_machines_have_no_label_but_that_of_their_sku() -> None:
    assert labels_of(with_backend(pinned(), "default"))["a100-4"] == {"pai-install/sku": "a100"}


def test_the_highest_priority_of_a_namespace_is_that_of_its_virtual_clusters() -> None:
    for case in CASES:
        scheduling = with_backend(CASES[case](), "default")
        (policy,) = [it for it in objects_of(scheduling) if it["kind"] == "ValidatingAdmissionPolicy"]
        assert policy["metadata"]["name"] == "pai-priorities"
    variables = {it["name"]: it["expression"] for it in policy["spec"]["variables"]}
    assert variables["highest"] == '{"default": 120, "team-a": 120}'


@given(divided_sites(backend="default"))
@settings(max_examples=60, deadline=None)
def test_all_quotas_together_are_what_virtual_clusters_with_a_group_are_guaranteed(scheduling: Scheduling) -> None:
    for resource in ("nvidia.com/gpu", "huawei.com/Ascend910"):
        given_away = sum(int(hard.get(f"requests.{resource}", "0")) for hard in quotas(scheduling).values())
        there = sum(it.total for it in scheduling.supply.values() if it.resource == resource)
        assert given_away <= there
        if all(cluster.namespaces for cluster in scheduling.clusters):
            wanted = sum(
                share.units
                for cluster in scheduling.clusters
                for share in cluster.shares
                if scheduling.supply[share.sku].resource == resource
            )
            assert given_away >= wanted
