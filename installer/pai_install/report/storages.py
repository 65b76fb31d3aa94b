"""The storages of a site, from its files alone: as data, as text, and the schema of the data. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pai_install.json_schema import closed_object, published
from pai_install.site.model import Site
from pai_install.site.services.storages import RULES, StorageEntry
from pai_install.storage.compile import current_grants
from pai_install.storage.place import place

STORAGES_SCHEMA_VERSION = 1
_HEAD = ("NAME", "TYPE", "PLACE", "CAPACITY", "WRITE", "FOLDERS", "CLAIM", "GROUPS")


def storages_data(site: Site) -> dict[str, Any]:
    """The published form."""
    entries = site.services.storages or ()
    return {"schema_version": STORAGES_SCHEMA_VERSION, "storages": [_row(site, entry) for entry in entries]}


def _row(site: Site, storage: StorageEntry) -> dict[str, Any]:
    return {
        "name": storage.name,
        "type": storage.type,
        "place": place(storage),
        "capacity": storage.capacity,
        "read_only": storage.read_only,
        "share": storage.share,
        "claim": _claim(site, storage.name),
        "groups": [grant.group for grant in current_grants(site) if grant.storage.name == storage.name],
    }


def _claim(site: Site, name: str) -> str:
    """Returns the claim for new jobs."""
    rotation = site.rotations.get(name)
    if rotation is None:
        return name
    return rotation.older[-1].claim if rotation.hidden else rotation.claim


def storages_text(site: Site) -> str:
    """A table with a line for each storage."""
    rows = [_cells(row) for row in storages_data(site)["storages"]]
    return table([_HEAD, *rows]) if rows else "this site has no storages: pai-install storage add NAME --type TYPE\n"


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    write = "read only" if row["read_only"] else "yes"
    folders = "one for all" if row["share"] else "one per user"
    groups = ", ".join(row["groups"]) or "none"
    return row["name"], row["type"], row["place"], row["capacity"], write, folders, row["claim"], groups


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Columns of equal width."""
    lines = list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n" for line in lines
    )


def schema() -> dict[str, Any]:
    """The JSON Schema of `storages_data`."""
    text: dict[str, Any] = {"type": "string"}
    yes: dict[str, Any] = {"type": "boolean"}
    one = closed_object(
        name=text,
        type={"enum": list(RULES)},
        place={**text, "description": "server:/path, //server/share, account/share, machine:/path, or /path"},
        capacity=text,
        read_only=yes,
        share={**yes, "description": "false: a folder per user"},
        claim={**text, "description": "the PVC that new jobs name"},
        groups={"type": "array", "items": text},
    )
    return published(
        "pai-install storage list",
        STORAGES_SCHEMA_VERSION,
        storages={"type": "array", "items": one},
    )
