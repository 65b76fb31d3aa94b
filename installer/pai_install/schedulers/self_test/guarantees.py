"""What schedulers promise, and what a broken promise means for users. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pai_install.checks.check import Check
from pai_install.schedulers.self_test.model import Scenario

# shown by all scenarios together
START = "scheduler-start"
_OBJECTS = "pai-install apply brings the scheduler's own objects and settings back"


@dataclass(frozen=True, slots=True)
class Promise:
    """A check of the self-test. meaning: what users suffer where the promise is broken."""

    check: Check[None]
    meaning: str


def _promise(name: str, title: str, meaning: str, reads: str, rule: str, remedy: str = _OBJECTS) -> Promise:
    check = Check(
        id=f"scheduler-{name}",
        title=title,
        judge=None,
        reads=f"{reads}, and the states of pods and jobs twice a second",
        rule=f"{rule}. UNKNOWN when nothing starts at all. SKIP where the scheduler does not promise it",
        remedy=remedy,
    )
    return Promise(check, meaning)


_STARTS = Check(
    id=START,
    title="A job that has quota and room starts",
    judge=None,
    reads="the jobs at the start of each scenario",
    rule="FAIL when one does not start within 60 s, or the API rejects the test's objects",
    remedy="run pai-install verify, and find the cause of pending pods with kubectl get events --all-namespaces",
)
_ALL = (
    Promise(_STARTS, "Jobs do not start"),
    _promise(
        "gang",
        "A job starts whole or not at all",
        "Jobs hold devices without being able to run",
        "a job of 3 pods beside one that leaves room for 2",
        "FAIL when any of its pods gets a place before all can, or it does not start when they can",
    ),
    _promise(
        "deadlock",
        "Jobs that wait for each other's devices do not block each other",
        "Two jobs can block each other without end, with every device taken and none at work",
        "two jobs of 3 pods that come at once where 4 have room",
        "FAIL when they do not both end, or both hold devices while no pod has ended",
    ),
    _promise(
        "quota",
        "A queue holds no more than its quota",
        "A team can take devices that another one is guaranteed",
        "a queue of 2 devices and jobs that want 3, on machines that have 4",
        "FAIL when it holds 3, or the third is not given when one is free again",
    ),
    _promise(
        "cores",
        "A queue of cores, without devices, works",
        "Jobs that need no device cannot be queued, or take more cores than they are given",
        "a queue of 20 millicores and jobs that want 30",
        "as scheduler-quota",
    ),
    _promise(
        "borrow",
        "What a queue does not use is lent",
        "Devices stay idle while jobs wait for them",
        "a job of 4 pods in a queue that is guaranteed 2, beside one that does not use its own 2",
        "FAIL when it does not start",
    ),
    _promise(
        "reclaim",
        "An owner takes back what it lent, and no half of a job is left",
        "A team does not get its guaranteed devices when it needs them, or half-evicted jobs hold them",
        "a job of the queue that had lent its devices",
        "FAIL when it waits longer than --back (30 s), when pods of the other job stay, or that does not run again",
    ),
    _promise(
        "priority",
        "A more important job goes first",
        "Important jobs wait behind others",
        "two jobs that wait for the same devices, the more important one came later",
        "FAIL when the other one runs first",
    ),
    _promise(
        "oversize",
        "A job that no machines have room for holds nothing",
        "A job that can never start holds devices, or keeps others waiting",
        "a job of 3 pods in a queue of 6 devices, on machines that have 2; then a job of 1 pod",
        "FAIL when any pod of the first gets a place, or the second does not start",
    ),
    _promise(
        "requeue",
        "A job that got quota and no room gives all back",
        "A job that got only some of its pods holds their devices until a person notices",
        "the same with Kueue and no topology; waitForPodsReady of Kueue's own settings",
        "FAIL when pods keep their places longer than Kueue's timeout and 30 s. SKIP where that is longer than --wait",
    ),
    _promise(
        "restart",
        "A job that loses a pod becomes whole again",
        "A job whose machine fails stays broken and keeps its other devices",
        "a job of 3 pods, one of which is deleted",
        "FAIL when not all 3 run again within 60 s",
    ),
    _promise(
        "down",
        "Pods of the system start while the scheduler of jobs is stopped",
        "When the scheduler of jobs fails, the system's own pods cannot start either",
        "a pod that is no job's, made while the scheduler's Deployments have no replica; with --disruptive",
        "FAIL when it does not start",
        "no admission webhook of the scheduler may ask for pods: kubectl get mutatingwebhookconfigurations",
    ),
)
PROMISES: Mapping[str, Promise] = {promise.check.id: promise for promise in _ALL}


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
