"""A site -> its storages and grants. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.site import Site
from pai_install.site.services.authentication import Group
from pai_install.site.services.storages import StorageEntry
from pai_install.storage.model import Grant, Storages


def storages_of(site: Site) -> Storages:
    """All storages of a site, and its groups' grants in the order of the file."""
    storages = site.services.storages or ()
    groups = _groups(site)
    namespaces = {group.groupname: namespace_of(group.groupname) for group in groups if group.groupname}
    return Storages(storages, tuple(_grants(groups, storages)), namespaces)


def namespace_of(group: str) -> str:
    """A group's namespace: its name as Kubernetes takes it. OpenPAI's names have '_' and upper-case letters."""
    return group.lower().replace("_", "-").strip("-")


def _groups(site: Site) -> tuple[Group, ...]:
    authentication = site.services.authentication
    manager = authentication.group_manager if authentication is not None else None
    return manager.groups if manager is not None else ()


def _grants(groups: tuple[Group, ...], storages: tuple[StorageEntry, ...]) -> Iterator[Grant]:
    """A name that no storage has is OpenPAI's own PVC, made by hand; it is no grant of ours."""
    known = {storage.name: storage for storage in storages}
    for group in groups:
        for name in dict.fromkeys(group.extension.acls.storage_configs):
            if name in known and group.groupname:
                yield Grant(known[name], group.groupname, namespace_of(group.groupname))
