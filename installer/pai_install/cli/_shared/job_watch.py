"""Watches a job until it ends."""

from __future__ import annotations

import time
from collections.abc import Callable

from pai_install.errors import ExitCode
from pai_install.jobs.pod_status import ENDED
from pai_install.jobs.state import JobState
from pai_install.report.jobs import job_text

_EVERY_S = 2.0


def watch(
    look: Callable[[], JobState | None], say: Callable[[str], None], sleep: Callable[[float], None] = time.sleep
) -> JobState | None:
    """Tells how the job stands whenever that changes, until it ends; how it stood then.

    look: None once the job is gone; then None is the answer, too.
    """
    told = ""
    while (job := look()) is not None:
        if (now := job_text(job)) != told:
            say(now)
            told = now
        if job.state in ENDED:
            return job
        sleep(_EVERY_S)
    return None


def exit_code_of(job: JobState | None) -> ExitCode:
    """6 for a job that failed, or was stopped meanwhile."""
    return ExitCode.OK if job is not None and job.state == "SUCCEEDED" else ExitCode.STEP_FAILED
