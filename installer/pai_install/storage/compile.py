"""A site -> the grants of its storages. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pai_install.site import Site
from pai_install.site.groups import PlacedGroup, groups_of
from pai_install.site.rotations import OldGeneration, StorageRotationState
from pai_install.site.services.storages import StorageEntry
from pai_install.storage.model import Grant


def grants_of(site: Site) -> tuple[Grant, ...]:
    """Returns each group's grants in the order of the file, with every existing generation, newest last.

    A name without a storage in the site is a claim that an admin of OpenPAI created manually. It is no grant of ours.
    """
    known = {storage.name: storage for storage in site.services.storages or ()}
    return tuple(
        grant
        for group in groups_of(site.services)
        for name in group.storages
        if name in known
        for grant in _generations(known[name], group, site.rotations.get(name))
    )


def current_grants(site: Site) -> tuple[Grant, ...]:
    """Returns the grant for new jobs, of each storage and group."""
    return tuple(grant for grant in grants_of(site) if grant.current)


def _generations(storage: StorageEntry, group: PlacedGroup, rotation: StorageRotationState | None) -> Iterator[Grant]:
    if rotation is None:
        yield Grant(storage, group.name, group.namespace)
        return
    for old in rotation.older:
        current = not rotation.used and old is rotation.older[-1]
        # while there is no newest, a group that is granted the storage gets what the others have
        if group.name in old.groups or current:
            yield _older(old, group, current=current)
    if not rotation.hidden:
        grant = Grant(storage, group.name, group.namespace, rotation.generation, rotation.claim)
        adopted = rotation.volumes.get(group.namespace, "")
        yield replace(grant, adopted=adopted, current=rotation.used, claimed=rotation.claimed)


def _older(old: OldGeneration, group: PlacedGroup, *, current: bool) -> Grant:
    grant = Grant(old.entry, group.name, group.namespace, old.generation, old.claim)
    return replace(grant, adopted=old.volumes.get(group.namespace, ""), current=current, claimed=old.claimed)


def closed_claims(site: Site) -> dict[str, tuple[str, ...]]:
    """Claim -> namespaces in which no new pod may use it, as a rotation replaces it, or makes the last copy of it."""
    closed: dict[str, tuple[str, ...]] = {}
    for grant in grants_of(site):
        rotation = site.rotations.get(grant.storage.name)
        for claim in _closed(rotation) if rotation is not None else ():
            closed[claim] = tuple(dict.fromkeys((*closed.get(claim, ()), grant.namespace)))
    return closed


def _closed(rotation: StorageRotationState) -> Iterator[str]:
    if rotation.closed:
        yield rotation.claim
    yield from (old.claim for old in rotation.older if old.closed)
