"""Rules of the section jobs: its storages exist, pods can write where they have to, and limits have an effect."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.documents.document import Document
from pai_install.documents.validate import did_you_mean
from pai_install.site.rules.problems import Wrong, add_problems
from pai_install.site.services.model import Services


def check_jobs(source: Document, services: Services) -> None:
    """Adds problems between the section jobs and the storages."""
    if services.jobs is not None:
        add_problems(source, (*_code(services), *_hdfs(services), *_unqueued(services), *_share(services)), ("jobs",))


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


def _unqueued(services: Services) -> Iterator[Wrong]:
    """Without queues no pod has the limit. Without groups it waits for the first one."""
    if services.jobs is None or services.jobs.unqueued is None:
        return
    if services.scheduler is None and not _hived(services):
        message = "pods have no queue without virtual clusters, so the limit has no effect"
        yield Wrong(("unqueued",), "no-effect", message, "add the section scheduler, or remove unqueued")


def _share(services: Services) -> Iterator[Wrong]:
    """Kueue counts the cores and memory of each machine type itself."""
    if services.jobs is None or services.jobs.device_share_percent is None or _hived(services):
        return
    if services.scheduler is None or services.scheduler.type == "kueue":
        counts = "Kueue counts cores and memory" if services.scheduler else "this site has no virtual clusters"
        yield Wrong(("device-share-percent",), "no-effect", f"the limit has no effect: {counts}", "remove it")


def _hived(services: Services) -> bool:
    """Whether HiveD's block may define the virtual clusters."""
    block = services.hivedscheduler is not None and services.hivedscheduler.config is not None
    return services.scheduler is None and block


def _known(services: Services, key: str, storage: str) -> Iterator[Wrong]:
    names = [one.name for one in services.storages or ()]
    if storage not in names:
        remedy = did_you_mean(storage, names) if names else "add the section storages"
        yield Wrong((key, "storage"), "unknown-storage", f"{storage} is no storage of this site", remedy)
