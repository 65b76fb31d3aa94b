"""Names that a site gives: machines, machine types, groups, virtual clusters, and storages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pai_install.scheduling.read import scheduling_of
from pai_install.site import load_site
from pai_install.site.groups import groups_of


def machine_names(folder: Path) -> Iterable[str]:
    """The machines, also absent ones."""
    return [machine.hostname for machine in load_site(folder).site.machines]


def machine_type_names(folder: Path) -> Iterable[str]:
    """The machine types."""
    return load_site(folder).site.skus


def group_names(folder: Path) -> Iterable[str]:
    """The groups."""
    return [group.name for group in groups_of(load_site(folder).site.services)]


def virtual_cluster_names(folder: Path) -> Iterable[str]:
    """The virtual clusters."""
    scheduling = scheduling_of(load_site(folder).site)
    return [cluster.name for cluster in scheduling.clusters] if scheduling is not None else ()


def storage_names(folder: Path) -> Iterable[str]:
    """The storages."""
    return [storage.name for storage in load_site(folder).site.services.storages or ()]
