"""What schedulers promise, what a broken promise means for users, and who does not make it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pai_install.schedulers.self_test.model import Scenario

# shown by all scenarios together
START = "scheduler-start"
_OBJECTS = "pai-install apply brings the scheduler's own objects and settings back"


@dataclass(frozen=True, slots=True)
class Promise:
    """title: the promise. meaning: what users suffer where it is broken."""

    id: str
    title: str
    meaning: str
    remedy: str = _OBJECTS


_ALL = (
    Promise(
        START,
        "A job that has quota and room starts",
        "Jobs do not start",
        remedy="pai-install verify; kubectl get events --all-namespaces shows what keeps pods from starting",
    ),
    Promise(
        "scheduler-gang",
        "A job starts whole or not at all",
        "Jobs hold devices without being able to run",
    ),
    Promise(
        "scheduler-deadlock",
        "Jobs that wait for each other's devices do not block each other",
        "Two jobs can block each other without end, with every device taken and none at work",
    ),
    Promise(
        "scheduler-quota",
        "A queue holds no more than its quota",
        "A team can take devices that another one is guaranteed",
    ),
    Promise(
        "scheduler-cores",
        "A queue of cores, without devices, works",
        "Jobs that need no device cannot be queued, or take more cores than they are given",
    ),
    Promise(
        "scheduler-borrow",
        "What a queue does not use is lent",
        "Devices stay idle while jobs wait for them",
    ),
    Promise(
        "scheduler-reclaim",
        "An owner takes back what it lent, and no half of a job is left",
        "A team does not get its guaranteed devices when it needs them, or half-evicted jobs hold them",
    ),
    Promise(
        "scheduler-priority",
        "A more important job goes first",
        "Important jobs wait behind others",
    ),
    Promise(
        "scheduler-oversize",
        "A job that no machines have room for holds nothing",
        "A job that can never start holds devices, or keeps others waiting",
    ),
    Promise(
        "scheduler-requeue",
        "A job that got quota and no room gives all back",
        "A job that got only some of its pods holds their devices until a person notices",
    ),
    Promise(
        "scheduler-restart",
        "A job that loses a pod becomes whole again",
        "A job whose machine fails stays broken and keeps its other devices",
    ),
    Promise(
        "scheduler-down",
        "Pods of the system start while the scheduler of jobs is stopped",
        "When the scheduler of jobs fails, the system's own pods cannot start either",
        remedy="no admission webhook of the scheduler may ask for pods: kubectl get mutatingwebhookconfigurations",
    ),
)
PROMISES: Mapping[str, Promise] = {promise.id: promise for promise in _ALL}


def left_out(
    unsupported: Mapping[str, str], played: tuple[Scenario, ...], reasons: Mapping[str, str] | None = None
) -> Iterator[tuple[str, str]]:
    """Promises that no scenario of a run tries, and why.

    unsupported: check -> why the scheduler does not promise it. reasons: check -> why this run did not try it.
    """
    known = {**_REASONS, **(reasons or {}), **unsupported}
    tried = {START if played else "", *(check for scenario in played for check in scenario.checks)}
    yield from ((check, known.get(check, "not tried")) for check in PROMISES if check not in tried)


_REASONS: Mapping[str, str] = {
    "scheduler-down": "it stops the scheduler for a moment: --disruptive tries it",
    "scheduler-requeue": "Kueue gives jobs longer to start than the test waits: --wait SECONDS tries it",
}
