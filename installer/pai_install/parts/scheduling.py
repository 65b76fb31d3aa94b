"""Values of the add-ons of schedulers: which one the site has, and how its controllers run. Pure."""

from __future__ import annotations

from typing import Any

from pai_install.parts.context import Context
from pai_install.ports import API_SERVER_PORT
from pai_install.site import Site

# How long the pods of a job that was admitted may take until all are ready; then the whole job goes back to its queue.
PODS_READY_TIMEOUT = "5m"


def has_kueue(site: Site) -> bool:
    """Whether Kueue is the site's scheduler of jobs."""
    return site.services.scheduler is not None and site.services.scheduler.type == "kueue"


def controller_values(context: Context) -> dict[str, Any]:
    """replicas: one stands by where another machine can hold it. api_port: the API server's, all that pods reach."""
    return {"replicas": min(len(context.site.control_planes), 2), "api_port": API_SERVER_PORT}


def kueue_values(context: Context) -> dict[str, Any]:
    """Those of its controller, and pods_ready_timeout as Kubernetes writes durations."""
    return {**controller_values(context), "pods_ready_timeout": PODS_READY_TIMEOUT}
