"""Guarantees that cannot be met, and the machines that are the reason."""

from __future__ import annotations

from typing import Any

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


def test_what_is_no_ones_is_missed_first() -> None:
    assert said(node("a100-1", {"nvidia.com/gpu": "4"})) == []
    assert said(node("a100-1", {"nvidia.com/gpu": "3"}), absent={"a100": ("a100-9",)}) == [
        "research and product lack, together, 1 a100: a100-1 offers 3 of 8; a100-9 is absent"
    ]


def test_each_reason_is_named() -> None:
    assert said(node("a100-1", ready="Unknown"), node("a100-2", cordoned=True)) == [
        "research and product lack, together, 12 a100: a100-1 is not Ready; a100-2 is cordoned"
    ]
    assert said(node("cpu-1", {"cpu": "9500m"})) == ["product lacks 1 cpu: cpu-1 offers 9 of 10"]


def test_a_machine_of_its_own_is_its_owners_loss_alone() -> None:
    assert said(node("a100-4", cordoned=True)) == ["research lacks 8 a100: a100-4 is cordoned"]


def test_a_machine_that_is_no_node() -> None:
    nodes = [node(name) for name in SUPPLY.machines]
    assert [str(one) for one in unmet(SITE, nodes, {})] == ["product lacks 10 cpu: cpu-1 is no node of the cluster"]
