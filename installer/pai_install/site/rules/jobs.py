"""Rules of the section jobs: its storages exist, and pods can write where they have to."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.documents.document import Document
from pai_install.documents.validate import did_you_mean
from pai_install.site.rules.problems import Wrong, add_problems
from pai_install.site.services.model import Services


def check_jobs(source: Document, services: Services) -> None:
    """Adds problems between the section jobs and the storages."""
    if services.jobs is not None:
        add_problems(source, _code(services), ("jobs",))


def _code(services: Services) -> Iterator[Wrong]:
    code = services.jobs.code if services.jobs is not None else None
    if code is None or code.storage is None:
        return
    place = ("code", "storage")
    storages = {one.name: one for one in services.storages or ()}
    if code.storage not in storages:
        message = f"{code.storage} is no storage of this site"
        remedy = did_you_mean(code.storage, storages) if storages else "add the section storages"
        yield Wrong(place, "unknown-storage", message, remedy)
    elif not storages[code.storage].written:
        yield Wrong(place, "read-only", f"{code.storage} is read-only", "name a storage that pods can write to")
