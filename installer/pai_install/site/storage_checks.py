"""Rules between storages, groups and machines: what is there twice, what is unknown, what contradicts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass

from pai_install.site.document import Document
from pai_install.site.services.authentication import GroupManager
from pai_install.site.services.storages import StorageEntry
from pai_install.site.validate import did_you_mean

# where a group would share its namespace with the system
_SYSTEM = ("kube-", "pai-")


@dataclass(frozen=True, slots=True)
class _Twice:
    """Two entries that say the same of `what`. number: of the later; first: of the earlier."""

    number: int
    first: int
    key: str
    what: str


def check_storages(source: Document, storages: tuple[StorageEntry, ...], machines: frozenset[str]) -> None:
    """Adds what is wrong between storages, and between them and the machines of the layout."""
    for found in (*_same(storages, "name", lambda entry: entry.name), *_same_place(storages)):
        remedy = f"the other is storages[{found.first}]"
        source.add(("storages", found.number, found.key), "site.twice", found.what, remedy)
    for number, entry in enumerate(storages):
        path = ("storages", number)
        if entry.machine is not None and entry.machine not in machines:
            message = f"{entry.machine} is no machine of layout.yaml"
            source.add((*path, "machine"), "site.unknown-machine", message, did_you_mean(entry.machine, machines))
        if entry.type == "hostPath" and entry.access_mode != "ReadWriteOnce":
            message = "each machine has a folder of its own there: what a job writes on one is not on the others"
            remedy = "use nfs, or leave it where every machine mounts the same there"
            source.add((*path, "type"), "site.per-machine", message, remedy, severity="warning")
        if entry.read_only and "access-mode" in entry.given and entry.access_mode != "ReadOnlyMany":
            message = f"{entry.access_mode} contradicts read-only: true"
            source.add((*path, "access-mode"), "site.contradiction", message, "remove one of them")


def _same(
    storages: tuple[StorageEntry, ...], key: str, of: Callable[[StorageEntry], Hashable | None], what: str
) -> Iterator[_Twice]:
    """Every entry that is like an earlier one."""
    first: dict[Hashable, int] = {}
    for number, entry in enumerate(storages):
        value = of(entry)
        if value is not None and first.setdefault(value, number) != number:
            yield _Twice(number, first[value], key, what)


def place(entry: StorageEntry) -> Hashable | None:
    """What is mounted, wherever it has another name; None while the entry is incomplete."""
    parts = (entry.server, entry.path, entry.share_name, entry.container_name, entry.account_name, entry.machine)
    return (entry.type, *parts) if any(parts) else None


def check_grants(source: Document, manager: GroupManager, storages: Collection[str]) -> None:
    """Adds an error for each grant of a storage that is not defined, and for groups that would share a namespace."""
    for path, group in manager.placed:
        for number, name in enumerate(group.extension.acls.storage_configs):
            if name not in storages:
                message = f"{name} is no storage of this file"
                where = (*path, "extension", "acls", "storageConfigs", number)
                source.add(where, "site.unknown-storage", message, did_you_mean(name, storages))
