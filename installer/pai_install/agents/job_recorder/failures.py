"""Real failures of jobs that a scheduler restarts after each loss of a pod, so that preemptions cost no retry. Pure.

Volcano counts a preemption as a retry. Its jobs therefore restart without a limit, and the recorder ends one that has
failed more often than its user permitted.
"""

from __future__ import annotations

from dataclasses import dataclass

from pai_install.agents.common.retries import retries_of
from pai_install.agents.common.values import Json, child, meta, text
from pai_install.agents.job_recorder.objects import is_deleting, is_refused
from pai_install.agents.job_recorder.preemptions import disruption_of

# annotation of Volcano's pods: the attempt that they belong to
_ATTEMPT = "volcano.sh/job-version"
# attempts of one job that are counted
_MOST = 500
_ENDED = ("Completed", "Failed", "Aborted", "Terminated", "Terminating", "Completing", "Aborting")


@dataclass(frozen=True)
class Attempts:
    """Attempts of one job. failed: attempts with a pod that failed.

    lost: attempts with a pod that lost its devices, or that its machine refused.
    """

    failed: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()

    @property
    def failures(self) -> int:
        """The number of attempts that failed by themselves."""
        return len(self.failed - self.lost)

    def lists(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Both in order, for a record."""
        return tuple(sorted(self.failed)), tuple(sorted(self.lost))


def with_pod(before: Attempts, pod: Json) -> Attempts:
    """The attempts after the state of a pod. A pod that is being deleted fails because of another one."""
    attempt = text(child(pod, "metadata", "annotations").get(_ATTEMPT))[:20]
    if not attempt or len(before.failed) + len(before.lost) >= _MOST:
        return before
    if disruption_of(pod) is not None or is_refused(pod):
        return Attempts(before.failed, before.lost | {attempt})
    # Volcano deletes the other pods of a job after a failure. Their ends are no failures of their own.
    if text(child(pod, "status").get("phase")) == "Failed" and not is_deleting(pod):
        return Attempts(before.failed | {attempt}, before.lost)
    return before


def is_spent(job: Json, attempts: Attempts) -> bool:
    """Whether a job has failed more often than its user permitted, and still has pods or gets new ones."""
    retries = retries_of(job)
    if retries is None or not meta(job, "uid"):
        return False
    phase = text(child(job, "status", "state").get("phase"))
    return attempts.failures > retries and phase not in _ENDED
