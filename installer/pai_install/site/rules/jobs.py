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
        add_problems(source, (*_code(services), *_hdfs(services)), ("jobs",))


def _code(services: Services) -> Iterator[Wrong]:
    code = services.jobs.code if services.jobs is not None else None
    if code is None or code.storage is None:
        return
    yield from _known(services, "code", code.storage)
    if any(one.name == code.storage and not one.written for one in services.storages or ()):
        message, remedy = f"{code.storage} is read-only", "name a storage that pods can write to"
        yield Wrong(("code", "storage"), "read-only", message, remedy)


def _hdfs(services: Services) -> Iterator[Wrong]:
    if services.jobs is not None and services.jobs.hdfs is not None:
        yield from _known(services, "hdfs", services.jobs.hdfs.storage)


def _known(services: Services, key: str, storage: str) -> Iterator[Wrong]:
    names = [one.name for one in services.storages or ()]
    if storage not in names:
        remedy = did_you_mean(storage, names) if names else "add the section storages"
        yield Wrong((key, "storage"), "unknown-storage", f"{storage} is no storage of this site", remedy)
