"""The cluster as module pai_facts saw it from a control plane, as values of the model. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from pai_install.cluster.model import Node, Pod
from pai_install.cluster.objects import rows
from pai_install.plan.observed import Observed
from pai_install.site import Site

_NODE = frozenset(field.name for field in fields(Node))
_POD = frozenset(field.name for field in fields(Pod))


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
    """What the first control plane that reached the API saw, else the first that has a cluster; None without one."""
    seen = [observed[machine.hostname].cluster for machine in site.control_planes if machine.hostname in observed]
    views = [cluster for cluster in seen if cluster is not None]
    if not views:
        return None
    return _parse(next((cluster for cluster in views if not cluster.get("error")), views[0]))


def _parse(cluster: Mapping[str, Any]) -> ClusterView:
    """Facts have the names of the model's fields; what is missing there is unknown."""
    nodes = tuple(Node(**_known(row, _NODE)) for row in rows(cluster.get("nodes")) if row.get("name"))
    pods = tuple(Pod(**_known(row, _POD)) for row in rows(cluster.get("pods")) if row.get("name"))
    return ClusterView(nodes, pods, str(cluster.get("error") or ""))


def _known(row: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items() if key in names}
