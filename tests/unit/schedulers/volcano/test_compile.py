"""Virtual clusters as queues of Volcano."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from syrupy.assertion import SnapshotAssertion

from pai_install.documents.quantity import parse_bytes
from pai_install.schedulers.compile import labels_of, objects_of, remarks
from pai_install.scheduling.model import Scheduling
from tests.unit.scheduling.sites import divided_sites
from tests.virtual_clusters import cpu_only, mixed, pinned, racks, two_teams, with_backend


def queue(scheduling: Scheduling, name: str) -> dict[str, Any]:
    objects = objects_of(with_backend(scheduling, "volcano"))
    (found,) = [it["spec"] for it in objects if (it["kind"], it["metadata"]["name"]) == ("Queue", name)]
    return dict(found)


def test_what_is_lent_is_deserved_and_what_is_not_is_guaranteed() -> None:
    found = queue(two_teams(), "product")
    assert found["deserved"]["nvidia.com/gpu"] == "12"
    assert found["guarantee"]["resource"]["nvidia.com/gpu"] == "6"
    assert found["capability"]["nvidia.com/gpu"] == "24"
    assert found["reclaimable"] is True


def test_without_a_limit_of_borrowing_there_is_no_capability() -> None:
    assert "capability" not in queue(two_teams(), "research")


def test_a_limit_of_one_sku_leaves_processors_open_where_another_has_none() -> None:
    assert queue(mixed(), "default")["capability"] == {"huawei.com/Ascend910": "0"}


def test_machines_of_ones_own_are_never_lent_and_come_first() -> None:
    found = queue(pinned(), "research")
    assert found["guarantee"]["resource"]["nvidia.com/gpu"] == "12"
    assert found["deserved"]["nvidia.com/gpu"] == "20"
    assert found["affinity"]["nodeGroupAffinity"] == {
        "requiredDuringSchedulingIgnoredDuringExecution": ["own.research"],
        "preferredDuringSchedulingIgnoredDuringExecution": ["a100"],
    }
    only_own = queue(pinned(), "lab")["affinity"]["nodeGroupAffinity"]
    assert only_own == {"requiredDuringSchedulingIgnoredDuringExecution": ["own.lab"]}


def test_a_machine_is_of_its_owners_group_or_of_its_skus() -> None:
    labels = labels_of(with_backend(pinned(), "volcano"))
    assert labels["a100-3"]["volcano.sh/nodegroup-name"] == "own.lab"
    assert labels["a100-1"]["volcano.sh/nodegroup-name"] == "a100"


def test_a_virtual_cluster_without_devices_has_none_of_them() -> None:
    found = queue(cpu_only(), "batch")
    assert found["deserved"] == {"nvidia.com/gpu": "0", "cpu": "100", "memory": "300Gi"}
    assert found["affinity"]["nodeGroupAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == ["cpu"]


def test_what_it_cannot_keep_is_told(snapshot: SnapshotAssertion) -> None:
    def told(scheduling: Scheduling) -> str:
        return "\n".join(remarks(with_backend(scheduling, "volcano")))

    assert told(mixed()) == snapshot
    assert told(racks()) == snapshot
    assert "PodEvicted -> RestartJob" in told(two_teams())


@given(divided_sites(backend="volcano"))
@settings(max_examples=60, deadline=None)
def test_what_volcanos_webhook_refuses_is_never_made(scheduling: Scheduling) -> None:
    """Of each resource no more is guaranteed than deserved, and no more deserved than possible."""
    for cluster in scheduling.clusters:
        found = queue(scheduling, cluster.name)
        assert set(found["guarantee"]["resource"]) == set(found["deserved"])
        for name, deserved in found["deserved"].items():
            assert amount(found["guarantee"]["resource"][name]) <= amount(deserved)
            if name in found.get("capability", {}):
                assert amount(deserved) <= amount(found["capability"][name])


def amount(written: str) -> int:
    """Thousandths."""
    return int(written[:-1]) if written.endswith("m") else 1000 * parse_bytes(written)
