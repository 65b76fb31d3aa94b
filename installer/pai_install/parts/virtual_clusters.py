"""Values of the add-on virtual_clusters: the site's virtual clusters, compiled for its scheduler. Pure."""

from __future__ import annotations

from typing import Any

from pai_install.parts.context import Context
from pai_install.profile.project import profile_of
from pai_install.profile.publish import profile_object
from pai_install.schedulers.compile import objects_of
from pai_install.site import Site
from pai_install.site.schedulers import scheduler_of


def has_virtual_clusters(site: Site) -> bool:
    """Returns whether the site divides its workers. HiveD's objects belong to its pod, in an add-on of their own."""
    return scheduler_of(site) not in (None, "hived")


def scheduling_objects(context: Context) -> list[dict[str, Any]]:
    """The objects of the virtual clusters, and the profile that programs in the cluster read."""
    if context.scheduling is None:
        return []
    return [*objects_of(context.scheduling), profile_object(profile_of(context.site))]


def virtual_cluster_values(context: Context) -> dict[str, Any]:
    """Returns objects: the virtual clusters, their dependencies, and the profile of the site."""
    return {"objects": scheduling_objects(context)}
