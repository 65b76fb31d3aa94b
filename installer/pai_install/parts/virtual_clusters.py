"""Values of the add-on virtual_clusters: the site's virtual clusters, compiled for its scheduler. Pure."""

from __future__ import annotations

from typing import Any

from pai_install.parts.context import Context
from pai_install.schedulers.compile import objects_of
from pai_install.site import Site
from pai_install.site.schedulers import scheduler_of


def has_virtual_clusters(site: Site) -> bool:
    """Whether the site's sections divide its workers; HiveD's objects go with its pod, in an add-on of their own."""
    return scheduler_of(site) not in (None, "hived")


def virtual_cluster_values(context: Context) -> dict[str, Any]:
    """objects: all of them, those that others name before them."""
    scheduling = context.scheduling
    return {"objects": list(objects_of(scheduling)) if scheduling is not None else []}
