"""Control planes where a service of the cluster answers on its loopback."""

from __future__ import annotations

from pai_install.app.context import App
from pai_install.cluster.client import Select
from pai_install.kube.model import Pod


def nodes_of_service(app: App, namespace: str, labels: str) -> tuple[str, ...]:
    """Returns the machines with a ready pod of these labels."""
    (pods,) = app.cluster.list(Select(("pods",), namespace, labels))
    known = {machine.hostname for machine in app.site.control_planes}
    return tuple(pod.node for pod in map(Pod.parse, pods) if pod.ready and pod.node in known)


def node_of_service(app: App, namespace: str, labels: str) -> str | None:
    """Returns the first machine with a ready pod of these labels, or None."""
    return next(iter(nodes_of_service(app, namespace, labels)), None)
