"""What schedulers promise, what a broken promise means for users, and who does not make it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pai_install.schedulers.self_test.model import Scenario
from pai_install.scheduling.model import Backend

# shown by all scenarios together
START = "scheduler-start"
_ONE_BY_ONE = "kube-scheduler places pod by pod and knows no gang"
_NO_LENDING = "a ResourceQuota is a limit: what it does not use is lost"
_OBJECTS = "pai-install apply brings the scheduler's own objects and settings back"


@dataclass(frozen=True, slots=True)
class Promise:
    """title: what is promised. meaning: for users, where it is broken. prepares: scenes that only make room for it.

    shown_by: the scene with whose end it is shown; empty: the last. without: back end -> why that does not promise it.
    """

    id: str
    title: str
    meaning: str
    remedy: str = _OBJECTS
    prepares: tuple[str, ...] = ()
    shown_by: str = ""
    without: Mapping[Backend, str] = field(default_factory=dict)


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
        prepares=("fill",),
        without={"default": _ONE_BY_ONE},
    ),
    Promise(
        "scheduler-deadlock",
        "Jobs that wait for each other's devices do not block each other",
        "Two jobs can block each other without end, with every device taken and none at work",
        without={"default": _ONE_BY_ONE},
    ),
    Promise(
        "scheduler-quota",
        "A queue holds no more than its quota",
        "A team can take devices that another one is guaranteed",
        prepares=("fill",),
    ),
    Promise(
        "scheduler-cores",
        "A queue of cores, without devices, works",
        "Jobs that need no device cannot be queued, or take more cores than they are given",
        prepares=("fill",),
    ),
    Promise(
        "scheduler-borrow",
        "What a queue does not use is lent",
        "Devices stay idle while jobs wait for them",
        shown_by="borrow",
        without={"default": _NO_LENDING},
    ),
    Promise(
        "scheduler-reclaim",
        "An owner takes back what it lent, and no half of a job is left",
        "A team does not get its guaranteed devices when it needs them, or half-evicted jobs hold them",
        prepares=("borrow",),
        without={"default": _NO_LENDING},
    ),
    Promise(
        "scheduler-priority",
        "A more important job goes first",
        "Important jobs wait behind others",
        prepares=("fill", "low asks", "high asks"),
    ),
    Promise(
        "scheduler-oversize",
        "A job that no machines have room for holds nothing",
        "A job that can never start holds devices, or keeps others waiting",
        without={"default": _ONE_BY_ONE},
    ),
    Promise(
        "scheduler-requeue",
        "A job that got quota and no room gives all back",
        "A job that got only some of its pods holds their devices until a person notices",
        prepares=("half",),
        without={
            "default": _ONE_BY_ONE,
            "volcano": "Volcano places all pods of a job at once: quota is never given without room",
            "hived": "HiveD gives all pods of a job their cells at once: quota is never given without room",
        },
    ),
    Promise(
        "scheduler-restart",
        "A job that loses a pod becomes whole again",
        "A job whose machine fails stays broken and keeps its other devices",
        prepares=("fill",),
    ),
    Promise(
        "scheduler-down",
        "Pods of the system start while the scheduler of jobs is stopped",
        "When the scheduler of jobs fails, the system's own pods cannot start either",
        remedy="no admission webhook of the scheduler may ask for pods: kubectl get mutatingwebhookconfigurations",
        without={"default": "kube-scheduler is the system's own"},
    ),
)
PROMISES: Mapping[str, Promise] = {promise.id: promise for promise in _ALL}


def unpromised(backend: Backend) -> Iterator[tuple[str, str]]:
    """Checks that a back end does not stand for, and why."""
    for promise in _ALL:
        if reason := promise.without.get(backend):
            yield promise.id, reason


def left_out(
    backend: Backend, played: tuple[Scenario, ...], reasons: Mapping[str, str] | None = None
) -> Iterator[tuple[str, str]]:
    """Promises of the back end that no scenario of a run tries, and why. reasons: check -> that of this run."""
    known = {**_REASONS, **(reasons or {})}
    tried = {START if played else "", *(check for scenario in played for check in scenario.checks)}
    for promise in _ALL:
        if backend not in promise.without and promise.id not in tried:
            yield promise.id, known.get(promise.id, "not tried")


_REASONS: Mapping[str, str] = {
    "scheduler-down": "it stops the scheduler for a moment: --disruptive tries it",
    "scheduler-requeue": "Kueue gives jobs longer to start than the test waits: --wait SECONDS tries it",
}
