"""jobs.idle, jobs.long, jobs.notebooks and the same of a virtual cluster: when a job has its GPUs for nothing."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, WithJsonSchema

from pai_install.documents.scalars import invalid, read_text, read_whole, shown
from pai_install.site.services.section import KebabSection, choice

Then = Literal["list", "warn", "stop", "preemptible"]
THENS: tuple[Then, ...] = ("list", "warn", "stop", "preemptible")
# what is measured ends there: whatever is busier is all the same
MOST_BUSY = 50
_UNITS = {"m": 60, "h": 3600, "d": 86400}
_LEAST_S, _MOST_S = 120, 365 * 86400
_WRITTEN = re.compile(r"([0-9]{1,6})([mhd])")


def _read_duration(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    word = read_text(value)
    found = _WRITTEN.fullmatch(word)
    if found is None:
        raise invalid("duration", f"{shown(word)} is no time", "write minutes, hours or days: 30m, 2h, 5d")
    seconds = int(found[1]) * _UNITS[found[2]]
    if not _LEAST_S <= seconds <= _MOST_S:
        raise invalid("duration", f"{word} is not from 2m to 365d", "write a time from 2m to 365d")
    return seconds


def _read_busy(value: object) -> int:
    found = read_whole(value)
    if not 1 <= found <= MOST_BUSY:
        message = f"{found} is not from 1 to {MOST_BUSY}"
        raise invalid("range", message, f"write percent of the time, from 1 to {MOST_BUSY}")
    return found


Duration = Annotated[
    int, BeforeValidator(_read_duration), WithJsonSchema({"type": "string", "pattern": "^[0-9]{1,6}[mhd]$"})
]
Busy = Annotated[
    int,
    BeforeValidator(_read_busy),
    WithJsonSchema({"type": ["integer", "string"], "minimum": 1, "maximum": MOST_BUSY}),
]
WhatThen = Annotated[Then, choice(*THENS)]


class IdleLimit(KebabSection):
    """jobs.idle, virtual-clusters[].idle: GPUs that do nothing. A virtual cluster's keys count before the site's."""

    busy_below: Busy = 10
    """GPU utilization in percent. A job is idle while no GPU exceeds it for a minute."""
    after: Duration = 3600
    """Duration, such as 30m, 2h, or 5d."""
    then: WhatThen = "list"
    """Action: list (in job list --abnormal), warn, stop, or preemptible. The last two follow after the grace period."""
    grace: Duration = 1800
    """Grace period between the warning and the action."""


class LongLimit(KebabSection):
    """jobs.long, virtual-clusters[].long: jobs that run for long, busy or not."""

    after: Duration = 5 * 86400
    """Duration since the start of the first pod, such as 30m, 2h, or 5d. The default is that of OpenPAI."""
    then: WhatThen = "list"
    """Action, as for idle. A job without GPUs is only listed."""
    grace: Duration = 86400
    """Grace period between the warning and the action."""


class NotebookLimit(KebabSection):
    """jobs.notebooks, virtual-clusters[].notebooks: of jobs with the label pai-install/notebook, in place of idle."""

    busy_below: Busy = 10
    """Utilization of GPUs and processors in percent, below which a notebook is unused."""
    after: Duration = 8 * 3600
    """Duration, such as 30m, 2h, or 5d."""
    then: WhatThen = "list"
    """Action, as for idle."""
    grace: Duration = 1800
    """Grace period between the warning and the action."""
