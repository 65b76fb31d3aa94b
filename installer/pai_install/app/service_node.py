"""The control plane where a service of the cluster answers on its loopback."""

from __future__ import annotations

from pai_install.app.context import App
from pai_install.cluster.client import Select
from pai_install.kube.model import Pod


def node_of_service(app: App, namespace: str, labels: str) -> str | None:
    """Returns the machine with a ready pod of these labels, or None."""
    (pods,) = app.cluster.list(Select(("pods",), namespace, labels))
    known = {machine.hostname for machine in app.site.control_planes}
    return next((pod.node for pod in map(Pod.parse, pods) if pod.ready and pod.node in known), None)
