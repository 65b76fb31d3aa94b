"""The storages of a site, from its files alone, as a result and as text. Pure."""

from __future__ import annotations

from pydantic import Field

from pai_install.json_schema import Report, ReportObject
from pai_install.report.table import table
from pai_install.site.model import Site
from pai_install.site.services.storages import StorageEntry, StorageType
from pai_install.storage.compile import current_grants
from pai_install.storage.place import place
from pai_install.system.words import clipped

_HEAD = ("NAME", "TYPE", "PLACE", "CAPACITY", "WRITE", "FOLDERS", "CLAIM", "GROUPS", "DESCRIPTION")
_WIDEST = 60


class ListedStorage(ReportObject):
    """A storage of the site."""

    name: str
    type: StorageType
    place: str = Field(description="server:/path, //server/share, account/share, machine:/path, or /path.")
    capacity: str
    read_only: bool
    share: bool = Field(description="Whether all users have one folder. false: a folder for each user.")
    claim: str = Field(description="PVC of new jobs.")
    groups: tuple[str, ...]
    description: str


class StoragesReport(Report, title="pai-install storage list"):
    """The storages of the site."""

    storages: tuple[ListedStorage, ...]


def storages_report(site: Site) -> StoragesReport:
    """The storages, in the order of the site."""
    return StoragesReport(storages=tuple(_row(site, entry) for entry in site.services.storages or ()))


def _row(site: Site, storage: StorageEntry) -> ListedStorage:
    return ListedStorage(
        name=storage.name,
        type=storage.type,
        place=place(storage),
        capacity=storage.capacity,
        read_only=storage.read_only,
        share=storage.share,
        claim=_claim(site, storage.name),
        groups=tuple(grant.group for grant in current_grants(site) if grant.storage.name == storage.name),
        description=storage.description,
    )


def _claim(site: Site, name: str) -> str:
    """Returns the claim for new jobs."""
    rotation = site.rotations.get(name)
    if rotation is None:
        return name
    return rotation.older[-1].claim if rotation.hidden else rotation.claim


def storages_text(report: StoragesReport) -> str:
    """A table with a line for each storage."""
    if not report.storages:
        return "this site has no storages: pai-install storage add NAME --type TYPE\n"
    return table([_HEAD, *map(_cells, report.storages)])


def _cells(row: ListedStorage) -> tuple[str, ...]:
    write = "read only" if row.read_only else "yes"
    folders = "one for all" if row.share else "one per user"
    groups, description = ", ".join(row.groups) or "none", clipped(row.description, _WIDEST)
    return row.name, row.type, row.place, row.capacity, write, folders, row.claim, groups, description
