"""The devices of the self-test: amounts of a resource that no driver has, on the status of nodes. Pure.

A kubelet keeps what others write there, so the scheduler counts them as it counts GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pai_install.cluster.client import Patch
from pai_install.kube.model import Node, Ref
from pai_install.schedulers.self_test.model import RESOURCE, Scenario


def given(machines: Sequence[str], scenarios: Sequence[Scenario]) -> Iterator[Patch]:
    """Gives every machine its share of what the scenarios need."""
    shares = {one.resource: str(one.capacity // len(machines)) for one in scenarios if one.capacity}
    for machine in machines:
        yield _patch(machine, shares)


def taken(nodes: Sequence[Node]) -> Iterator[Patch]:
    """Takes from every node what any run of the test gave it."""
    for node in nodes:
        names = {name for name in (*node.capacity, *node.allocatable) if name.startswith(RESOURCE)}
        if names:
            yield _patch(node.name, dict.fromkeys(sorted(names)))


def _patch(machine: str, amounts: dict[str, str] | dict[str, None]) -> Patch:
    body = {"status": {"capacity": amounts, "allocatable": amounts}}
    return Patch(Ref("node", machine), body, part="status")
