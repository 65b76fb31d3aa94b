"""Rules between groups and their references: separate namespaces, existing storages and credentials."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pai_install.documents.document import Document
from pai_install.documents.validate import did_you_mean, nearest
from pai_install.site.groups import PlacedGroup, groups_of, unfit
from pai_install.site.rules.problems import Wrong, add_problems
from pai_install.site.services.model import Services


def check_groups(source: Document, services: Services) -> None:
    """Adds problems between groups, their namespaces, storages, and credentials."""
    groups = groups_of(services)
    add_problems(source, (*_namespaces(groups), *_grants(groups, services), *_logins(groups, services)))


def _namespaces(groups: tuple[PlacedGroup, ...]) -> Iterator[Wrong]:
    first: dict[str, PlacedGroup] = {}
    for group in groups:
        path = (*group.path, "groupname")
        why = unfit(group.namespace)
        if why:
            message = f"{group.name} cannot have a namespace: {group.namespace or 'its name'} {why}"
            yield Wrong(path, "group-namespace", message, "give the group another name")
        elif first.setdefault(group.namespace, group) is not group:
            message = f"would share the namespace {group.namespace} with the group {first[group.namespace].name}"
            yield Wrong(path, "group-namespace", message, "give one of them another name")


def _grants(groups: tuple[PlacedGroup, ...], services: Services) -> Iterator[Wrong]:
    """Without the section, the names are those of claims that an admin of OpenPAI made by hand."""
    if services.storages is None:
        return
    known = frozenset(storage.name for storage in services.storages)
    for group in groups:
        for number, name in enumerate(group.group.extension.acls.storage_configs):
            if name not in known:
                path = (*group.path, "extension", "acls", "storageConfigs", number)
                meant = nearest(name, sorted(known))
                message = f"{name} is no storage of the section storages"
                if meant:
                    yield Wrong(path, "unknown-storage", message, f"did you mean {meant}?")
                else:
                    remedy = "define the storage, unless you created a claim with that name manually"
                    yield Wrong(path, "unknown-storage", message, remedy, "warning")


def _logins(groups: tuple[PlacedGroup, ...], services: Services) -> Iterator[Wrong]:
    known: Collection[str] = frozenset(group.name for group in groups)
    for number, login in enumerate(services.registry.logins if services.registry is not None else ()):
        for place, name in enumerate(login.groups):
            if name not in known:
                path = ("registry", "logins", number, "groups", place)
                remedy = did_you_mean(name, known) or "define it in authentication.group-manager.grouplist"
                yield Wrong(path, "unknown-group", f"{name} is no group of this site", remedy)
