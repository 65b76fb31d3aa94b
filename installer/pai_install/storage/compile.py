"""A site -> the grants of its storages. Pure."""

from __future__ import annotations

from pai_install.site import Site
from pai_install.site.groups import groups_of
from pai_install.storage.model import Grant


def grants_of(site: Site) -> tuple[Grant, ...]:
    """What each group may mount, in the order of the file.

    A name that no storage of the site has is that of a claim that an admin of OpenPAI made by hand: no grant of ours.
    """
    known = {storage.name: storage for storage in site.services.storages or ()}
    return tuple(
        Grant(known[name], group.name, group.namespace)
        for group in groups_of(site.services)
        for name in group.storages
        if name in known
    )
