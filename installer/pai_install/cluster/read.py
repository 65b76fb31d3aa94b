"""Typed reading: objects of the API as values of the model, one round trip each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pai_install.cluster.client import ClusterClient, Select
from pai_install.kube.model import Node, Pod
from pai_install.kube.volumes import Volume, VolumeClaim
from pai_install.kube.workloads import PodDisruptionBudget, Workload

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


@dataclass(frozen=True, slots=True)
class Mounts:
    """Volumes, claims, and pods that may use them."""

    volumes: tuple[Volume, ...] = ()
    claims: tuple[VolumeClaim, ...] = ()
    pods: tuple[Pod, ...] = ()


def mounts(client: ClusterClient, namespaces: Collection[str], labels: str) -> Mounts:
    """Returns volumes with these labels, claims and pods of these namespaces, and other namespaces with a labelled
    claim.

    It needs two round trips and reads no Secret.
    """
    selects = (Select(("persistentvolumes",), labels=labels), Select(("persistentvolumeclaims",), labels=labels))
    here = tuple(dict.fromkeys(namespaces))
    pvs, labelled, *others = client.list(*selects, *(Select(("persistentvolumeclaims",), one) for one in here))
    found = [VolumeClaim.parse(claim) for group in (labelled, *others) for claim in group]
    claims = tuple({(claim.namespace, claim.name): claim for claim in found}.values())
    where = tuple(dict.fromkeys((*here, *(claim.namespace for claim in claims))))
    pods = client.list(*(Select(("pods",), one) for one in where)) if where else ()
    return Mounts(tuple(map(Volume.parse, pvs)), claims, tuple(Pod.parse(pod) for group in pods for pod in group))
