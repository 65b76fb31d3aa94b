"""Which workers take pods of a test."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pai_install.kube.model import Node
from pai_install.kube.objects import JsonObject

# more machines would show no more, and cost more
_MOST_MACHINES = 2
_TAINTS = ("NoSchedule", "NoExecute")


def takers_of(workers: Collection[str], nodes: Iterable[JsonObject]) -> tuple[Node, ...]:
    """The first of the workers that take pods."""
    fit = (node for node in map(Node.parse, nodes) if node.name in workers and _takes_pods(node))
    return tuple(sorted(fit, key=lambda node: node.name))[:_MOST_MACHINES]


def _takes_pods(node: Node) -> bool:
    tainted = any(taint.effect in _TAINTS for taint in node.taints)
    return node.ready is True and node.cordoned is False and not tainted
