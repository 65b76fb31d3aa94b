"""States of jobs and instances in OpenPAI's words. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pai_install.jobs.pod_status import Instance
from pai_install.jobs.state import JobState

# OpenPAI calls a job WAITING until all of it runs
STATES: Mapping[str, str] = {
    "WAITING": "WAITING",
    "STARTING": "WAITING",
    "RUNNING": "RUNNING",
    "STOPPING": "STOPPING",
    "STOPPED": "STOPPED",
    "SUCCEEDED": "SUCCEEDED",
    "FAILED": "FAILED",
}
_SUB_STATES: Mapping[str, str] = {
    "WAITING": "AttemptCreationPending",
    "STARTING": "AttemptPreparing",
    "RUNNING": "AttemptRunning",
    "STOPPING": "AttemptDeletionRequested",
    "STOPPED": "Completed",
    "SUCCEEDED": "Completed",
    "FAILED": "Completed",
}


def state_of(job: JobState) -> str:
    """The state of a job."""
    return STATES.get(job.state, "UNKNOWN")


def sub_state_of(job: JobState) -> str:
    """The state of its framework."""
    return _SUB_STATES.get(job.state, "UNKNOWN")


def task_state(one: Instance) -> str:
    """The state of an instance."""
    return STATES.get(one.state, "UNKNOWN")
