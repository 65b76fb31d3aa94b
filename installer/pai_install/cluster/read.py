"""Typed reading: objects of the API as values of the model, one round trip each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pai_install.cluster.client import ClusterClient, Select
from pai_install.cluster.model import Node, Pod
from pai_install.cluster.workloads import PodDisruptionBudget, Workload

WORKLOADS = ("deployments.apps", "daemonsets.apps", "statefulsets.apps", "jobs.batch")


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Nodes, the pods on them, and the budgets that protect pods."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    budgets: tuple[PodDisruptionBudget, ...]

    def node(self, name: str) -> Node | None:
        """The node of that name."""
        return next((node for node in self.nodes if node.name == name), None)

    def pods_on(self, name: str) -> tuple[Pod, ...]:
        """The pods that were given to a node."""
        return tuple(pod for pod in self.pods if pod.node == name)

    def budgets_of(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """The budgets that protect a pod."""
        return tuple(budget for budget in self.budgets if budget.covers(pod.namespace, pod.labels))


def nodes(client: ClusterClient) -> tuple[Node, ...]:
    """Every node."""
    (found,) = client.list(Select(("nodes",)))
    return tuple(map(Node.parse, found))


def pods(client: ClusterClient, namespace: str = "", *, labels: str = "", node: str = "") -> tuple[Pod, ...]:
    """The pods of a namespace ("": all), with those labels, on that node."""
    fields = f"spec.nodeName={node}" if node else ""
    (found,) = client.list(Select(("pods",), namespace, labels, fields))
    return tuple(map(Pod.parse, found))


def workloads(client: ClusterClient, namespace: str = "", *, kinds: Sequence[str] = WORKLOADS) -> tuple[Workload, ...]:
    """The workloads of a namespace ("": all)."""
    (found,) = client.list(Select(tuple(kinds), namespace))
    return tuple(map(Workload.parse, found))


def occupancy(client: ClusterClient, node: str = "") -> Occupancy:
    """Every node and budget, and the pods of all nodes or of one."""
    fields = f"spec.nodeName={node}" if node else ""
    found = client.list(Select(("nodes",)), Select(("pods",), fields=fields), Select(("poddisruptionbudgets",)))
    return Occupancy(
        tuple(map(Node.parse, found[0])),
        tuple(map(Pod.parse, found[1])),
        tuple(map(PodDisruptionBudget.parse, found[2])),
    )
