"""Rules between storages and machines: duplicates, unknown names, rules that Kubernetes does not enforce."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator

from pai_install.documents.document import Document
from pai_install.documents.validate import did_you_mean
from pai_install.site.rules.problems import Wrong, add_problems
from pai_install.site.services.storages import DRIVERS, StorageEntry
from pai_install.site.settings import Settings

_ON_MACHINES = ("hostPath", "local")


def check_storages(
    source: Document,
    storages: tuple[StorageEntry, ...],
    machines: Collection[str] | None,
    settings: Settings | None = None,
) -> None:
    """Adds problems between storages, and between them, the machines, and the settings (None: unknown)."""
    add_problems(source, (*_names(storages), *_places(storages)), ("storages",))
    for number, entry in enumerate(storages):
        add_problems(
            source, (*_machine(entry, machines), *_modes(entry), *_driver(entry, settings)), ("storages", number)
        )


def _names(storages: tuple[StorageEntry, ...]) -> Iterator[Wrong]:
    for number, first in _alike(storages, lambda entry: entry.name):
        message = f"{storages[number].name} is here a second time"
        remedy = f"rename it: storages[{first}] has the same name"
        yield Wrong((number, "name"), "twice", message, remedy)


def _places(storages: tuple[StorageEntry, ...]) -> Iterator[Wrong]:
    """Yields folders with two names. They work in Kubernetes, but confuse a person who cleans up."""
    for number, first in _alike(storages, place_of):
        message = f"is the same place as storages[{first}], {storages[first].name}"
        yield Wrong((number, "name"), "same-place", message, "write one of them, or leave it so", "warning")


def _alike(storages: tuple[StorageEntry, ...], of: Callable[[StorageEntry], Hashable]) -> Iterator[tuple[int, int]]:
    """The number of every entry that is like an earlier one, and the number of that one."""
    first: dict[Hashable, int] = {}
    for number, entry in enumerate(storages):
        value = of(entry)
        if first.setdefault(value, number) != number:
            yield number, first[value]


def place_of(entry: StorageEntry) -> Hashable:
    """Returns the mounted source, regardless of its name."""
    return (
        entry.type,
        entry.server,
        entry.path,
        entry.share_name,
        entry.container_name,
        entry.account_name,
        entry.machine,
    )


def _machine(entry: StorageEntry, machines: Collection[str] | None) -> Iterator[Wrong]:
    # None stands for a layout that could not be read. Then nothing is known about machines.
    if entry.machine is not None and machines is not None and entry.machine not in machines:
        message = f"{entry.machine} is no machine of layout.yaml"
        yield Wrong(("machine",), "unknown-machine", message, did_you_mean(entry.machine, machines))


def _modes(entry: StorageEntry) -> Iterator[Wrong]:
    if entry.read_only and "access-mode" in entry.given and entry.access_mode != "ReadOnlyMany":
        message = f"{entry.access_mode} contradicts read-only: true"
        yield Wrong(("access-mode",), "contradiction", message, "remove one of them")
    if entry.type in _ON_MACHINES and not entry.written:
        message = f"cannot be kept: Kubernetes lets every pod write into a {entry.type} volume"
        key = "read-only" if entry.read_only else "access-mode"
        yield Wrong((key,), "read-only", message, "remove it, or take the right to write away on the machine")
    if entry.type == "hostPath" and entry.access_mode != "ReadWriteOnce":
        message = "each machine has a folder of its own there: what a job writes on one is not on the others"
        remedy = "set access-mode: ReadWriteOnce, unless all machines mount the same file system there"
        yield Wrong(("type",), "per-machine", message, remedy, "warning")


def _driver(entry: StorageEntry, settings: Settings | None) -> Iterator[Wrong]:
    if settings is None or entry.type not in DRIVERS or not settings.csi_drivers:
        return
    if settings.component_source == "modules":
        driver = DRIVERS[entry.type]
        message = (
            f"needs the driver {driver}, which exists only as an upstream image: component_source: modules lacks it"
        )
        remedy = "choose upstream, mirror, or a bundle, or set csi_drivers: false and install the driver yourself"
        yield Wrong(("type",), "no-driver", message, remedy)
