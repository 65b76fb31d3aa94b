"""Guarantees that cannot be met, and the machines that are the reason."""

from __future__ import annotations

from typing import Any

from syrupy.assertion import SnapshotAssertion

from pai_install.scheduling.usage.health import unmet
from tests.virtual_clusters import cluster, cores, gpus, share, site

SUPPLY = gpus("a100", 4)
PLAIN = cores("cpu", 1, 10)
SITE = site(
    SUPPLY,
    PLAIN,
    clusters=(
        cluster("research", share(SUPPLY, 8), pinned=("a100-4",)),
        cluster("product", share(SUPPLY, 12), share(PLAIN, 10)),
        cluster("guests", share(SUPPLY, 0)),
    ),
)


def node(
    name: str, offers: dict[str, str] | None = None, *, ready: str = "True", cordoned: bool = False
) -> dict[str, Any]:
    spec = {"unschedulable": True} if cordoned else {}
    allocatable = offers or {"nvidia.com/gpu": "8", "cpu": "10"}
    return {
        "kind": "Node",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": ready}]},
    }


def said(*nodes: dict[str, Any], absent: dict[str, tuple[str, ...]] | None = None) -> list[str]:
    names = {one["metadata"]["name"] for one in nodes}
    rest = [node(name) for name in (*SUPPLY.machines, *PLAIN.machines) if name not in names]
    return [str(one) for one in unmet(SITE, [*nodes, *rest], absent or {})]


def test_healthy_machines_meet_all() -> None:
    assert said() == []


def test_what_is_no_ones_is_missed_first(snapshot: SnapshotAssertion) -> None:
    assert said(node("a100-1", {"nvidia.com/gpu": "4"})) == []
    assert said(node("a100-1", {"nvidia.com/gpu": "3"}), absent={"a100": ("a100-9",)}) == snapshot


def test_each_reason_is_named(snapshot: SnapshotAssertion) -> None:
    assert said(node("a100-1", ready="Unknown"), node("a100-2", cordoned=True)) == snapshot
    assert said(node("cpu-1", {"cpu": "9500m"})) == snapshot


def test_a_machine_of_its_own_is_its_owners_loss_alone(snapshot: SnapshotAssertion) -> None:
    assert said(node("a100-4", cordoned=True)) == snapshot


def test_a_machine_that_is_no_node(snapshot: SnapshotAssertion) -> None:
    nodes = [node(name) for name in SUPPLY.machines]
    assert [str(one) for one in unmet(SITE, nodes, {})] == snapshot
