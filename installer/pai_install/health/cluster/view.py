"""The cluster as module pai_facts saw it from a control plane, as values of the model. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pai_install.kube.model import Node, Pod
from pai_install.plan.observed import ClusterFacts, Observed
from pai_install.site import Site


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Every node and the pods of the system. error: why the API did not answer, "" when it did."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    error: str = ""

    def node(self, name: str) -> Node | None:
        """The node of that name."""
        return next((node for node in self.nodes if node.name == name), None)


def view_of(site: Site, observed: Mapping[str, Observed]) -> ClusterView | None:
    """Returns the view of the first control-plane node that reached the API, else of the first with a
    cluster, or None.
    """
    seen = [observed[machine.hostname].cluster for machine in site.control_planes if machine.hostname in observed]
    views = [cluster for cluster in seen if cluster is not None]
    if not views:
        return None
    return _parse(next((cluster for cluster in views if not cluster.error), views[0]))


def _parse(cluster: ClusterFacts) -> ClusterView:
    """Parses the facts, which have the field names of the model. Missing fields are unknown."""
    nodes = tuple(Node(**dict(row)) for row in cluster.nodes if row.name)
    pods = tuple(Pod(**dict(row)) for row in cluster.pods if row.name)
    return ClusterView(nodes, pods, cluster.error)
