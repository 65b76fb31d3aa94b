"""Values of the add-on hived: HiveD, a kube-scheduler of its own, and the bridge between them. Pure."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from pai_install.parts.context import Context
from pai_install.parts.virtual_clusters import scheduling_objects
from pai_install.ports import API_SERVER_PORT, HIVED_BRIDGE_PORT, HIVED_EXTENDER_PORT, HIVED_PORT
from pai_install.schedulers.hived.compile import NAMESPACE
from pai_install.site import Site
from pai_install.site.schedulers import scheduler_of


def has_hived(site: Site) -> bool:
    """Whether HiveD keeps the site's virtual clusters, be it by OpenPAI's own block."""
    return scheduler_of(site) == "hived"


def hived_values(context: Context) -> dict[str, Any]:
    """Returns objects (compiled from the virtual clusters) and configuration_digest (of their configurations).

    api_port: of the API server, the only port that the pod connects to. The other ports are the pod's own.
    """
    objects = scheduling_objects(context)
    return {
        "objects": objects,
        "configuration_digest": _digest(objects),
        "api_port": API_SERVER_PORT,
        "open_port": HIVED_BRIDGE_PORT,
        "extender_port": HIVED_EXTENDER_PORT,
        "hived_port": HIVED_PORT,
    }


def _digest(objects: list[dict[str, Any]]) -> str:
    """Of all ConfigMaps beside the pod: each program reads its own when it starts."""
    read = [entry for entry in objects if entry["kind"] == "ConfigMap" and entry["metadata"]["namespace"] == NAMESPACE]
    texts = [text for entry in read for text in entry["data"].values()]
    return sha256("\0".join(texts).encode()).hexdigest()[:16]
