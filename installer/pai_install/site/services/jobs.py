"""jobs: records of finished jobs, and limits of idle jobs. An extension."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from pai_install.documents.scalars import invalid, read_text, read_whole, shown
from pai_install.site.services.section import KebabSection, Word
from pai_install.site.services.use_limits import IdleLimit, LongLimit, NotebookLimit
from pai_install.site.services.virtual_clusters import Memory

_MOST_DAYS, _MOST_RECORDS, _MOST_KIB, _MOST_MONTHS, _MOST_MIB = 365, 5000, 256, 120, 64 * 1024
_MOST_CORES = 1_000_000
_LEAST_PERCENT, _MOST_PERCENT = 100, 10_000


def _up_to(most: int, least: int = 0) -> BeforeValidator:
    def read(value: object) -> int:
        found = read_whole(value)
        if not least <= found <= most:
            raise invalid("range", f"{found} is not from {least} to {most}", f"write a number from {least} to {most}")
        return found

    return BeforeValidator(read)


def _number(most: int, least: int = 0) -> WithJsonSchema:
    return WithJsonSchema({"type": ["integer", "string"], "minimum": least, "maximum": most})


Days = Annotated[int, _up_to(_MOST_DAYS), _number(_MOST_DAYS)]
Records = Annotated[int, _up_to(_MOST_RECORDS, 1), _number(_MOST_RECORDS, 1)]
Months = Annotated[int, _up_to(_MOST_MONTHS, 1), _number(_MOST_MONTHS, 1)]
Mebibytes = Annotated[int, _up_to(_MOST_MIB, 1), _number(_MOST_MIB, 1)]
Kibibytes = Annotated[int, _up_to(_MOST_KIB, 1), _number(_MOST_KIB, 1)]


class CodeLimit(KebabSection):
    """jobs.code: the code of `job submit --code` above 1 MiB."""

    storage: Word | None = None
    """Storage for code. The default is the only shared storage of the group."""
    max_mib: Mebibytes = 1024
    """Maximum size of the files in the folder, in MiB."""
    keep_days: Annotated[int, _up_to(_MOST_DAYS, 1), _number(_MOST_DAYS, 1)] = 30
    """Days until unused code is removed, at the next submission of code."""


def _read_folder(value: object) -> str:
    word = read_text(value)
    if not word.startswith("/") or ".." in word.split("/") or not word.isprintable():
        raise invalid("path", f"{shown(word)} is no folder of the storage", "write a path such as /hdfs")
    return word


def _read_percent(value: object) -> int:
    found = read_whole(value)
    if found and not _LEAST_PERCENT <= found <= _MOST_PERCENT:
        raise invalid(
            "range",
            f"{found} is not from {_LEAST_PERCENT} to {_MOST_PERCENT}",
            f"write a percentage from {_LEAST_PERCENT} to {_MOST_PERCENT}, or 0 for no limit",
        )
    return found


class HdfsFolders(KebabSection):
    """jobs.hdfs: the storage that stands for HDFS in job files of OpenPAI before 1.0."""

    storage: Word
    """Storage with the files of HDFS. The groups of such jobs need a grant."""
    path: Annotated[str, BeforeValidator(_read_folder), WithJsonSchema({"type": "string"})] = "/"
    """Folder of the storage for hdfs://HOST:PORT/."""


class UnqueuedPods(KebabSection):
    """jobs.unqueued: limit of pods outside queues in each group, such as pods without devices and without a job."""

    cores: Annotated[int, _up_to(_MOST_CORES, 1), _number(_MOST_CORES, 1)]
    """Cores that these pods of a group may request together."""
    memory: Memory
    """Memory that these pods of a group may request together, such as 64Gi."""


class Jobs(KebabSection):
    """jobs: records, which answer after their pods are gone, and when a job has its GPUs for nothing."""

    keep_days: Days = 7
    """Days until the record of a deleted job is removed. 0 disables records."""
    keep_per_group: Records = 500
    """Maximum number of records of deleted jobs per group. The oldest are removed first."""
    log_kib: Kibibytes = 16
    """Size of the stored log of each pod, in KiB. Jobs with more than 40 pods store less."""
    ledger_months: Months = 13
    """Complete months that the ledger of GPU hours covers, besides the current one."""
    idle: IdleLimit | None = None
    """Rule for jobs with idle GPUs, unless a virtual cluster has its own."""
    long: LongLimit | None = None
    """Rule for long jobs, unless a virtual cluster has its own."""
    notebooks: NotebookLimit | None = None
    """Rule for unused notebooks, unless a virtual cluster has its own."""
    code: CodeLimit | None = None
    """Code of `job submit --code` above 1 MiB, which is kept on a storage."""
    hdfs: HdfsFolders | None = None
    """Storage for hdfs:// addresses of old job files."""
    unqueued: UnqueuedPods | None = None
    """Limit of cores and memory of pods outside queues, for each group. [default: no limit]"""
    device_share_percent: Annotated[int, BeforeValidator(_read_percent), _number(_MOST_PERCENT)] | None = None
    """Most cores and memory that pods request per device, in percent of its share. 0: no limit. [default: 100]"""
