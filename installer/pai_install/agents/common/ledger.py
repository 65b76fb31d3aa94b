"""GPU time of pods as lines of JSON: one when a pod gets devices, one when it ends, and samples between. Pure.

Each control plane writes a ledger of its own. Ledgers merge by the UID of the pod, in any order and any number of
times, so one lost control plane loses nothing. Times are whole seconds since 1970, and None is an unknown time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pai_install.agents.common.values import InvalidJsonError, Json, child, number, parse_object, text

VERSION = 1
# folder of a control plane with the files of the ledger, and the beginning of their names, before YYYY-MM
FOLDER, FILE, SUFFIX = "/var/lib/pai-job-recorder", "ledger-", ".jsonl"
START, END, USE, ALIVE, QUOTA = "start", "end", "use", "alive", "quota"
# why a pod lost its devices; where the pod and its scheduler say different things, the scheduler counts
COMPLETED, FAILED, PREEMPTED, EVICTED, STOPPED = "completed", "failed", "preempted", "evicted", "stopped"
BY_OTHERS = (PREEMPTED, EVICTED)
# seconds between two lines that say that the recorder works
ALIVE_S = 300
MAX_LINE = 128 * 1024
_MAX_TIME, _MAX_DEVICES, _MAX_WORD, _MAX_FLAVORS = 1 << 33, 4096, 400, 50
_WORDS = ("namespace", "pod", "user", "cluster", "flavor", "priority", "job", "job_uid", "node", "sku")


@dataclass(frozen=True)
class Sample:
    """The use of a pod's devices until a time: seconds of computing and of measuring, of all devices together."""

    at: int
    busy: int
    measured: int


@dataclass(frozen=True)
class Hold:
    """A pod that holds devices from start to end. Empty words are unknown.

    queued: since when it waited for the devices. estimated: no object said the end. seen: the last time when a
    recorder saw the pod. flavor: the scheduler's name of the devices' kind.
    """

    uid: str
    devices: int
    start: int
    namespace: str = ""
    pod: str = ""
    user: str = ""
    cluster: str = ""
    flavor: str = ""
    priority: str = ""
    job: str = ""
    job_uid: str = ""
    node: str = ""
    sku: str = ""
    queued: int | None = None
    end: int | None = None
    estimated: bool = False
    reason: str = ""
    seen: int = 0
    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True)
class Quota:
    """Devices that a virtual cluster is guaranteed from a time on. units: by flavor."""

    cluster: str
    at: int
    units: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Ledger:
    """All that is known. holds: by UID. damaged: lines that could not be read."""

    holds: Mapping[str, Hold] = field(default_factory=dict)
    quotas: frozenset[Quota] = frozenset()
    alive: int = 0
    damaged: int = 0


def line_of(hold: Hold) -> str:
    """The line of a pod that got devices, or that ended. It repeats everything, so each line stands for itself."""
    body: dict[str, Any] = {"v": VERSION, "event": START if hold.end is None else END}
    body["uid"] = hold.uid[:_MAX_WORD]
    body |= {"devices": hold.devices, "queued": hold.queued, "start": hold.start, "end": hold.end}
    body |= {name: getattr(hold, name)[:_MAX_WORD] for name in _WORDS}
    body |= {"reason": hold.reason, "estimated": hold.estimated or None}
    return _encoded({name: value for name, value in body.items() if value not in (None, "")})


def line_of_sample(uid: str, sample: Sample) -> str:
    """The line of a sample."""
    body = {
        "v": VERSION,
        "event": USE,
        "uid": uid[:_MAX_WORD],
        "at": sample.at,
        "busy": sample.busy,
        "measured": sample.measured,
    }
    return _encoded(body)


def line_of_quota(quota: Quota) -> str:
    """The line of a quota."""
    units = {name[:_MAX_WORD]: count for name, count in quota.units[:_MAX_FLAVORS]}
    body = {"v": VERSION, "event": QUOTA, "cluster": quota.cluster[:_MAX_WORD], "at": quota.at, "units": units}
    return _encoded(body)


def line_of_time(at: int) -> str:
    """The line that says that the recorder works."""
    return _encoded({"v": VERSION, "event": ALIVE, "at": at})


def _encoded(body: Json) -> str:
    return json.dumps(body, separators=(",", ":"))


def read(lines: Iterable[str]) -> Ledger:
    """The ledger of one control plane. A line that is torn, foreign, or of another version counts as damaged."""
    holds: dict[str, Hold] = {}
    samples: dict[str, list[Sample]] = {}
    quotas: set[Quota] = set()
    alive = damaged = 0
    for line in lines:
        try:
            body = parse_object(line, max_size=MAX_LINE, max_depth=2)
        except InvalidJsonError:
            damaged += bool(line.strip())
            continue
        event, uid = body.get("event"), text(body.get("uid"))[:_MAX_WORD]
        hold, quota, at = _hold(body, uid), _quota(body), _time(body.get("at"))
        if number(body.get("v")) != VERSION:
            damaged += 1
        elif event in (START, END) and hold is not None:
            holds[uid] = merged_hold(holds[uid], hold) if uid in holds else hold
        elif event == USE and at is not None and (sample := _sample(body, at)) is not None:
            samples.setdefault(uid, []).append(sample)
        elif event == ALIVE and at is not None:
            alive = max(alive, at)
        elif event == QUOTA and quota is not None:
            quotas.add(quota)
        else:
            damaged += 1
    found = {
        uid: replace(hold, seen=max(alive, hold.start), samples=_in_order(samples.get(uid, ())))
        for uid, hold in holds.items()
    }
    return Ledger(found, frozenset(quotas), alive, damaged)


def _hold(body: Json, uid: str) -> Hold | None:
    start, end, devices = _time(body.get("start")), _time(body.get("end")), number(body.get("devices"))
    # A damaged disk may leave any digits in a line. Limits keep one line from spoiling all sums.
    if not uid or start is None or not devices or devices > _MAX_DEVICES or (end is not None and end < start):
        return None
    words: dict[str, Any] = {name: text(body.get(name))[:_MAX_WORD] for name in _WORDS}
    queued, reason = _time(body.get("queued")), text(body.get("reason"))[:_MAX_WORD]
    hold = Hold(
        uid,
        devices,
        start,
        queued=queued if queued is not None and queued <= start else None,
        end=end,
        estimated=end is not None and body.get("estimated") is True,
        reason=reason if end is not None else "",
    )
    return replace(hold, **words)


def _quota(body: Json) -> Quota | None:
    cluster, at = text(body.get("cluster"))[:_MAX_WORD], _time(body.get("at"))
    units = {name: number(value) for name, value in child(body, "units").items()}
    if not cluster or at is None:
        return None
    return Quota(cluster, at, tuple(sorted((name, value) for name, value in units.items() if value is not None)))


def _sample(body: Json, at: int) -> Sample | None:
    busy, measured = number(body.get("busy")), number(body.get("measured"))
    return Sample(at, busy, measured) if busy is not None and measured is not None and busy <= measured else None


def _time(value: object) -> int | None:
    found = number(value)
    return found if found is not None and 0 < found <= _MAX_TIME else None


def merged(ledgers: Iterable[Ledger]) -> Ledger:
    """Several ledgers as one. Neither the order nor repetitions count."""
    holds: dict[str, Hold] = {}
    quotas: frozenset[Quota] = frozenset()
    alive = damaged = 0
    for ledger in ledgers:
        for uid, hold in ledger.holds.items():
            holds[uid] = merged_hold(holds[uid], hold) if uid in holds else hold
        quotas |= ledger.quotas
        # Ledgers repeat each other's pods, so a sum of damaged lines would count the same loss several times.
        alive, damaged = max(alive, ledger.alive), max(damaged, ledger.damaged)
    return Ledger(holds, quotas, alive, damaged)


def merged_hold(one: Hold, other: Hold) -> Hold:
    """What two ledgers know of one pod. An end that an object said counts before an estimated one."""
    if one == other:
        return one
    pair = (one, other)
    last = max(
        pair, key=lambda it: (it.end is not None, not it.estimated, it.end or 0, it.reason in BY_OTHERS, it.reason)
    )
    queued = [it.queued for it in pair if it.queued is not None]
    words: dict[str, Any] = {name: max(getattr(it, name) for it in pair) for name in _WORDS}
    return replace(
        one,
        **words,
        devices=max(it.devices for it in pair),
        # A control plane that was down sees the pod later than the others.
        start=min(it.start for it in pair),
        queued=min(queued) if queued else None,
        end=last.end,
        estimated=last.estimated,
        reason=last.reason,
        seen=max(it.seen for it in pair),
        samples=_in_order((*one.samples, *other.samples)),
    )


def _in_order(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """By time, each time once. Counters never fall, so of two samples of one time the higher one counts."""
    found: dict[int, Sample] = {}
    for sample in sorted(samples, key=lambda it: (it.at, it.measured, it.busy)):
        found[sample.at] = sample
    return tuple(found[at] for at in sorted(found))
