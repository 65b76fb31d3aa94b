"""The devices of the self-test: amounts of a resource without a driver, in the status of nodes. Pure.

A kubelet keeps foreign entries there, so the scheduler counts them as GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pai_install.cluster.client import Patch
from pai_install.kube.model import Node, Ref
from pai_install.schedulers.self_test.model import RESOURCE, Scenario


def given(machines: Sequence[str], scenarios: Sequence[Scenario]) -> Iterator[Patch]:
    """Yields patches that give each machine its share of the scenarios' devices."""
    shares = {one.resource: str(one.capacity // len(machines)) for one in scenarios if one.capacity}
    for machine in machines:
        yield _patch(machine, shares)


def taken(nodes: Sequence[Node]) -> Iterator[Patch]:
    """Yields patches that remove the devices of all runs of the test from every node."""
    for node in nodes:
        names = {name for name in (*node.capacity, *node.allocatable) if name.startswith(RESOURCE)}
        if names:
            yield _patch(node.name, dict.fromkeys(sorted(names)))


def _patch(machine: str, amounts: dict[str, str] | dict[str, None]) -> Patch:
    body = {"status": {"capacity": amounts, "allocatable": amounts}}
    return Patch(Ref("node", machine), body, part="status")
