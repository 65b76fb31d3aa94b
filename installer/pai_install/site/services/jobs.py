"""jobs: records of finished jobs, and limits of idle jobs. An extension."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from pai_install.documents.scalars import invalid, read_whole
from pai_install.site.services.section import KebabSection
from pai_install.site.services.use_limits import IdleLimit, LongLimit, NotebookLimit

_MOST_DAYS, _MOST_RECORDS, _MOST_KIB, _MOST_MONTHS = 365, 5000, 256, 120


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
Kibibytes = Annotated[int, _up_to(_MOST_KIB, 1), _number(_MOST_KIB, 1)]


class Jobs(KebabSection):
    """jobs: records, which answer after their pods are gone, and when a job has its GPUs for nothing."""

    keep_days: Days = 7
    """Days that the record of a job stays after the job is gone; 0: nothing is recorded."""
    keep_per_group: Records = 500
    """Records that a group may have of jobs that are gone; beyond that the oldest go."""
    log_kib: Kibibytes = 16
    """KiB of the last lines of each pod that a record has; fewer of a job with more than 40 pods."""
    ledger_months: Months = 13
    """Complete months that the ledger of GPU hours covers, besides the current one."""
    idle: IdleLimit | None = None
    """GPUs that do nothing; what virtual clusters do not say themselves."""
    long: LongLimit | None = None
    """Jobs that run for long; the same."""
    notebooks: NotebookLimit | None = None
    """Notebooks that no one uses; the same."""
