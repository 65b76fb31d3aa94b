"""The scenarios of the self-test: which jobs are made when, and what is waited for. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from pai_install.schedulers.self_test.limits import DeviceLimit, NotTogether, PartialAtMost, RunsFirst
from pai_install.schedulers.self_test.model import CORES, RESOURCE, Gang, GangState, Queue, Scenario, ScenarioStep

# what every installation shows: those that a job of several machines stands on, in less time than all
QUICK = ("gang", "quota", "borrow")
# how long what must not happen is waited for: several rounds of every scheduler
WATCH_S = 6.0
# what a queue or a machine that was full may need until it is offered again
RETURN_S = 60.0
# pods of a gang get their places one after the other, within this time
PLACING_S = 10.0
# a gang that is evicted ends within this time; some are evicted pod by pod before they are restarted whole
LEAVING_S = 20.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """start_s: for pods that may start. back_s: in which an owner has its own again. requeue_s: in which a gang that
    came to no whole must have given back what it holds; 0: nothing promises it, or no one waits so long.
    """

    start_s: float = 60.0
    back_s: float = 30.0
    requeue_s: float = 0.0


def on_devices(unsupported: Collection[str], bounds: Bounds) -> tuple[Scenario, ...]:
    """Those on devices of the test, but for the checks that a scheduler does not support."""
    made = [_quota(bounds), _priority(bounds), _cores(bounds), _restart(bounds), _gang(bounds), _deadlock(bounds)]
    made += [_reclaim(bounds), _oversize(bounds), _down(bounds), *([_requeue(bounds)] if bounds.requeue_s else [])]
    return tuple(one for one in made if not set(one.checks) & set(unsupported))


def on_cells(bounds: Bounds, marker: str, room: int, total: int) -> tuple[Scenario, ...]:
    """Those that HiveD passes with its own cells, in a virtual cluster that has room for so many pods, 3 or more.

    marker: the resource of HiveD's pods. total: pods that all machines have room for; nothing is lent where it is no
    more than the virtual cluster's own.
    """
    made = [_quota(bounds, room), _priority(bounds, room), _restart(bounds), _gang(bounds, room)]
    made += [_deadlock(bounds, room), _oversize(bounds, room + 1, room), *_lent(bounds, room, total)]
    return (*(replace(one, capacity=0, resource=marker) for one in made), _down(bounds))


def _lent(bounds: Bounds, room: int, total: int) -> list[Scenario]:
    return [_reclaim(bounds, room, total)] if total > room else []


def on_cores(bounds: Bounds, marker: str, room: int) -> Scenario:
    """That of cores, with cells of a machine without devices."""
    return replace(_cores(bounds, room), resource=marker, unit="1")


def _scenario(name: str, checks: tuple[str, ...], queues: tuple[Queue, ...], *steps: ScenarioStep) -> Scenario:
    return Scenario(name, checks, queues, steps, resource=f"{RESOURCE}-{name}")


def _only(units: int) -> tuple[Queue, ...]:
    return (Queue("only", units, units),)


def _whole(*gangs: str) -> dict[str, GangState]:
    return dict.fromkeys(gangs, GangState.WHOLE)


def _gang(bounds: Bounds, room: int = 4) -> Scenario:
    """A gang waits while one device too few is free."""
    first, whole = Gang("first", "only", (room - 2,)), Gang("whole", "only", (1, 2))
    part = DeviceLimit("pods of a job started while there was no room for all", ("whole",))
    slow = PartialAtMost("a job held some of its devices for long before it had all", "whole", PLACING_S)
    late = "a job did not start though there was room for all its pods"
    return _scenario(
        "gang",
        ("scheduler-gang",),
        _only(room),
        ScenarioStep("fill", starts=(first,), wants=_whole("first"), within_s=bounds.start_s),
        ScenarioStep("wait", starts=(whole,), within_s=WATCH_S, limits=(part,)),
        ScenarioStep("start", (), ("first",), "", _whole("whole"), bounds.start_s, late, limits=(slow,)),
    )


def _deadlock(bounds: Bounds, room: int = 4) -> Scenario:
    """Two gangs come at once, and there is room for one."""
    names = ("one", "two")
    gangs = tuple(Gang(name, "only", (room - 1,), seconds=3) for name in names)
    both = ScenarioStep(
        "both",
        starts=gangs,
        wants=dict.fromkeys(names, GangState.DONE),
        within_s=2 * bounds.start_s,
        missed="two jobs that have no room beside each other did not both end",
        limits=(NotTogether("two jobs that have no room beside each other held devices at once", names),),
    )
    return _scenario("deadlock", ("scheduler-deadlock",), _only(room), both)


def _quota(bounds: Bounds, room: int = 2) -> Scenario:
    """A queue is full while the machines are not."""
    return _scenario("quota", ("scheduler-quota",), _only(room), *_full(bounds, room))


def _full(bounds: Bounds, room: int) -> tuple[ScenarioStep, ...]:
    first, more = Gang("first", "only", (room,)), Gang("more", "only", (1,))
    limits = (DeviceLimit("a queue held more than its quota", ("first", "more"), room),)
    late = "a job did not start when its queue had room again"
    return (
        ScenarioStep("fill", starts=(first,), wants=_whole("first"), within_s=bounds.start_s, limits=limits),
        ScenarioStep("wait", starts=(more,), within_s=WATCH_S, limits=limits),
        ScenarioStep("start", ends=("first",), wants=_whole("more"), within_s=RETURN_S, missed=late),
    )


def _cores(bounds: Bounds, room: int = 2) -> Scenario:
    """As `_quota`, with cores and no device."""
    found = ("scheduler-cores",)
    steps = _full(bounds, room)
    return Scenario("cores", found, _only(room), steps, capacity=0, resource=CORES, unit="10m", topology=False)


def _reclaim(bounds: Bounds, room: int = 2, total: int = 4) -> Scenario:
    """A guest borrows what an owner does not use; then the owner wants it."""
    queues = (Queue("owner", room, total), Queue("guest", total - room, total))
    # of one priority: quota decides, not rank; of the one that may take something from others
    guest, owner = Gang("guest", "guest", (total,), rank="high"), Gang("owner", "owner", (room,), rank="high")
    idle = "a job did not get the devices that another queue does not use"
    lent = "an owner did not get back the devices that it lent"
    rest = DeviceLimit("a job that lost part of its devices kept the rest", ("guest",))
    slow = PartialAtMost("a job ran for long with part of its devices", "guest", LEAVING_S)
    again = "a job that gave devices back did not start again when they were free"
    return _scenario(
        "borrow",
        ("scheduler-borrow", "scheduler-reclaim"),
        queues,
        ScenarioStep("borrow", (guest,), (), "", _whole("guest"), bounds.start_s, idle, proves="scheduler-borrow"),
        ScenarioStep("take back", (owner,), (), "", _whole("owner"), 2 * bounds.back_s, lent, bounds.back_s, (slow,)),
        ScenarioStep("settle", within_s=WATCH_S, limits=(rest, slow)),
        ScenarioStep("return", ends=("owner",), wants=_whole("guest"), within_s=RETURN_S, missed=again),
    )


def _priority(bounds: Bounds, room: int = 2) -> Scenario:
    """Two jobs wait; the one that came later is the more important."""
    first = Gang("first", "only", (room,), rank="high")
    low, high = (Gang(rank, "only", (room,), rank=rank, seconds=4) for rank in ("low", "high"))
    wrong = RunsFirst("a less important job ran before one that came later and is more important", "high", "low")
    ended = dict.fromkeys(("high", "low"), GangState.DONE)
    late = "two jobs that waited did not both run"
    steps = (
        ScenarioStep("fill", starts=(first,), wants=_whole("first"), within_s=bounds.start_s),
        ScenarioStep("low asks", starts=(low,), within_s=WATCH_S / 2),
        ScenarioStep("high asks", starts=(high,), within_s=WATCH_S / 2),
        ScenarioStep("both", (), ("first",), "", ended, 2 * bounds.start_s, late, limits=(wrong,)),
    )
    found = ("scheduler-priority",)
    return Scenario("priority", found, _only(room), steps, capacity=2, resource=f"{RESOURCE}-priority")


def _oversize(bounds: Bounds, pods: int = 3, quota: int = 6) -> Scenario:
    """The queue has room for a gang that the machines have no room for, and another job comes."""
    large, small = Gang("large", "only", (pods,)), Gang("small", "only", (1,))
    limits = (DeviceLimit("a job that the machines have no room for held devices", ("large",)),)
    late = "a job that fits did not start behind one that fits no machine"
    steps = (
        ScenarioStep("wait", starts=(large,), within_s=WATCH_S, limits=limits),
        ScenarioStep("pass", (small,), (), "", _whole("small"), bounds.start_s, late, limits=limits),
    )
    found = ("scheduler-oversize",)
    return Scenario("oversize", found, _only(quota), steps, capacity=2, resource=f"{RESOURCE}-oversize")


def _requeue(bounds: Bounds) -> Scenario:
    """As `_oversize`, where nothing but the quota is requested: half of the gang starts and must give back."""
    half, kept = Gang("half", "only", (3,)), "half of a job kept its devices"
    steps = (
        ScenarioStep("half", starts=(half,), wants={"half": GangState.HOLDS}, within_s=bounds.start_s),
        ScenarioStep("requeue", wants={"half": GangState.GONE}, within_s=bounds.requeue_s, missed=kept),
    )
    found = ("scheduler-requeue",)
    return Scenario("requeue", found, _only(6), steps, 2, f"{RESOURCE}-requeue", topology=False)


def _restart(bounds: Bounds) -> Scenario:
    """A gang loses a pod, as with its machine."""
    gang, broken = Gang("gang", "only", (1, 2)), "a job that lost a pod did not become whole again"
    return _scenario(
        "restart",
        ("scheduler-restart",),
        _only(4),
        ScenarioStep("fill", starts=(gang,), wants=_whole("gang"), within_s=bounds.start_s),
        ScenarioStep("lose", loses="gang", wants={"gang": GangState.RENEWED}, within_s=RETURN_S, missed=broken),
    )


def _down(bounds: Bounds) -> Scenario:
    """A pod of the system starts while the scheduler of jobs is stopped."""
    system, late = Gang("system", "", (1,), queued=False), "while the scheduler of jobs is stopped, no other pod starts"
    step = ScenarioStep("start", starts=(system,), wants=_whole("system"), within_s=bounds.start_s, missed=late)
    found = ("scheduler-down",)
    return Scenario("down", found, (), (step,), capacity=0, resource=CORES, unit="10m", disruptive=True)
