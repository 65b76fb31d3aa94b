"""The scenarios of the self-test: which jobs are made when, and what is waited for. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pai_install.schedulers.self_test.model import CORES, RESOURCE, Gang, Queue, Scenario, Scene, Want
from pai_install.scheduling.model import Backend

# what every installation shows: those that a job of several machines stands on, in less time than all
QUICK = ("gang", "quota", "borrow")
# how long what must not happen is waited for: several rounds of every scheduler
WATCH_S = 6.0
# what a queue or a machine that was full may need until it is offered again
RETURN_S = 60.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """start_s: for pods that may start. back_s: in which an owner has its own again. requeue_s: in which a gang that
    came to no whole must have given back what it holds; 0: nothing promises it, or no one waits so long.
    """

    start_s: float = 60.0
    back_s: float = 30.0
    requeue_s: float = 0.0


def scenarios(backend: Backend, bounds: Bounds) -> tuple[Scenario, ...]:
    """Those that the back end promises to pass, on devices of the test; HiveD knows none, it has `on_cells`."""
    if backend == "hived":
        return ()
    made = [_quota(bounds), _priority(bounds), _cores(bounds), _restart(bounds)]
    if backend in ("kueue", "volcano"):
        made += [_gang(bounds), _deadlock(bounds), _take_back(bounds), _oversize(bounds), _down(bounds)]
    if backend == "kueue" and bounds.requeue_s:
        made.append(_requeue(bounds))
    return tuple(made)


def on_cells(bounds: Bounds, marker: str, room: int, total: int) -> tuple[Scenario, ...]:
    """Those that HiveD passes with its own cells, in a virtual cluster that has room for so many pods, 3 or more.

    marker: the resource of HiveD's pods. total: pods that all machines have room for; nothing is lent where it is no
    more than the virtual cluster's own.
    """
    made = [_quota(bounds, room), _priority(bounds, room), _restart(bounds), _gang(bounds, room)]
    made += [_deadlock(bounds, room), _oversize(bounds, room + 1, room), *_lent(bounds, room, total)]
    return (*(replace(one, capacity=0, resource=marker) for one in made), _down(bounds))


def _lent(bounds: Bounds, room: int, total: int) -> list[Scenario]:
    return [_take_back(bounds, room, total)] if total > room else []


def on_cores(bounds: Bounds, marker: str, room: int) -> Scenario:
    """That of cores, with cells of a machine without devices."""
    return replace(_cores(bounds, room), resource=marker, unit="1")


def _scenario(name: str, checks: tuple[str, ...], queues: tuple[Queue, ...], *scenes: Scene) -> Scenario:
    return Scenario(name, checks, queues, scenes, resource=f"{RESOURCE}-{name}")


def _only(units: int) -> tuple[Queue, ...]:
    return (Queue("only", units, units),)


def _whole(*gangs: str) -> dict[str, Want]:
    return dict.fromkeys(gangs, Want.WHOLE)


def _gang(bounds: Bounds, room: int = 4) -> Scenario:
    """A gang waits while one device too few is free."""
    first, whole = Gang("first", "only", (room - 2,)), Gang("whole", "only", (1, 2))
    return _scenario(
        "gang",
        ("scheduler-gang",),
        _only(room),
        Scene("fill", starts=(first,), wants=_whole("first"), within_s=bounds.start_s),
        Scene("wait", starts=(whole,), within_s=WATCH_S),
        Scene("start", ends=("first",), wants=_whole("whole"), within_s=bounds.start_s),
    )


def _deadlock(bounds: Bounds, room: int = 4) -> Scenario:
    """Two gangs come at once, and there is room for one."""
    gangs = tuple(Gang(name, "only", (room - 1,), seconds=3) for name in ("one", "two"))
    both = Scene("both", starts=gangs, wants=dict.fromkeys(("one", "two"), Want.DONE), within_s=2 * bounds.start_s)
    return _scenario("deadlock", ("scheduler-deadlock",), _only(room), both)


def _quota(bounds: Bounds, room: int = 2) -> Scenario:
    """A queue is full while the machines are not."""
    return _scenario("quota", ("scheduler-quota",), _only(room), *_full(bounds, room))


def _full(bounds: Bounds, room: int) -> tuple[Scene, ...]:
    first, more = Gang("first", "only", (room,)), Gang("more", "only", (1,))
    return (
        Scene("fill", starts=(first,), wants=_whole("first"), within_s=bounds.start_s),
        Scene("wait", starts=(more,), within_s=WATCH_S),
        Scene("start", ends=("first",), wants=_whole("more"), within_s=RETURN_S),
    )


def _cores(bounds: Bounds, room: int = 2) -> Scenario:
    """As `_quota`, with cores and no device."""
    found = ("scheduler-cores",)
    scenes = _full(bounds, room)
    return Scenario("cores", found, _only(room), scenes, capacity=0, resource=CORES, unit="10m", topology=False)


def _take_back(bounds: Bounds, room: int = 2, total: int = 4) -> Scenario:
    """A guest borrows what an owner does not use; then the owner wants it."""
    queues = (Queue("owner", room, total), Queue("guest", total - room, total))
    # of one priority: quota decides, not rank; of the one that may take something from others
    guest, owner = Gang("guest", "guest", (total,), rank="high"), Gang("owner", "owner", (room,), rank="high")
    return _scenario(
        "borrow",
        ("scheduler-borrow", "scheduler-reclaim"),
        queues,
        Scene("borrow", starts=(guest,), wants=_whole("guest"), within_s=bounds.start_s),
        Scene("take back", starts=(owner,), wants=_whole("owner"), within_s=2 * bounds.back_s),
        Scene("settle", within_s=WATCH_S),
        Scene("return", ends=("owner",), wants=_whole("guest"), within_s=RETURN_S),
    )


def _priority(bounds: Bounds, room: int = 2) -> Scenario:
    """Two jobs wait; the one that came later is the more important."""
    first = Gang("first", "only", (room,), rank="high")
    low, high = (Gang(rank, "only", (room,), rank=rank, seconds=4) for rank in ("low", "high"))
    scenes = (
        Scene("fill", starts=(first,), wants=_whole("first"), within_s=bounds.start_s),
        Scene("low asks", starts=(low,), within_s=WATCH_S / 2),
        Scene("high asks", starts=(high,), within_s=WATCH_S / 2),
        Scene("both", ends=("first",), wants={"high": Want.DONE, "low": Want.DONE}, within_s=2 * bounds.start_s),
    )
    found = ("scheduler-priority",)
    return Scenario("priority", found, _only(room), scenes, capacity=2, resource=f"{RESOURCE}-priority")


def _oversize(bounds: Bounds, pods: int = 3, quota: int = 6) -> Scenario:
    """The queue has room for a gang that the machines have no room for, and another job comes."""
    large, small = Gang("large", "only", (pods,)), Gang("small", "only", (1,))
    scenes = (
        Scene("wait", starts=(large,), within_s=WATCH_S),
        Scene("pass", starts=(small,), wants=_whole("small"), within_s=bounds.start_s),
    )
    found = ("scheduler-oversize",)
    return Scenario("oversize", found, _only(quota), scenes, capacity=2, resource=f"{RESOURCE}-oversize")


def _requeue(bounds: Bounds) -> Scenario:
    """As `_oversize`, where nothing but the quota is asked: half of the gang starts and must give back."""
    half = Gang("half", "only", (3,))
    scenes = (
        Scene("half", starts=(half,), wants={"half": Want.HOLDS}, within_s=bounds.start_s),
        Scene("requeue", wants={"half": Want.GONE}, within_s=bounds.requeue_s),
    )
    found = ("scheduler-requeue",)
    return Scenario("requeue", found, _only(6), scenes, 2, f"{RESOURCE}-requeue", topology=False)


def _restart(bounds: Bounds) -> Scenario:
    """A gang loses a pod, as with its machine."""
    gang = Gang("gang", "only", (1, 2))
    return _scenario(
        "restart",
        ("scheduler-restart",),
        _only(4),
        Scene("fill", starts=(gang,), wants=_whole("gang"), within_s=bounds.start_s),
        Scene("lose", loses="gang", wants={"gang": Want.RENEWED}, within_s=RETURN_S),
    )


def _down(bounds: Bounds) -> Scenario:
    """A pod of the system starts while the scheduler of jobs is stopped."""
    system = Gang("system", "", (1,), queued=False)
    scene = Scene("start", starts=(system,), wants=_whole("system"), within_s=bounds.start_s)
    found = ("scheduler-down",)
    return Scenario("down", found, (), (scene,), capacity=0, resource=CORES, unit="10m", disruptive=True)
