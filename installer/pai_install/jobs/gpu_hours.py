"""The ledger of GPU hours -> the account of a period. Pure.

All amounts are whole GPU seconds. What the ledger does not know is None, and a sum has only what is known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Literal

from pai_install.agents.common.ledger import PREEMPTED, Hold, Ledger, Quota

Key = Literal["user", "group", "virtual-cluster", "job", "sku", "node"]
KEYS: tuple[Key, ...] = ("user", "group", "virtual-cluster", "job", "sku", "node")
# seconds without a sign of a recorder, after which a pod counts until it was last seen
FRESH_S = 900


@dataclass(frozen=True, slots=True)
class Period:
    """Seconds since 1970. end: the first second after it."""

    start: int
    end: int

    def overlap(self, start: int, end: int) -> int:
        """Seconds that both have in common."""
        return max(0, min(self.end, end) - max(self.start, start))


@dataclass(frozen=True, slots=True)
class Amounts:
    """GPU seconds of pods. busy: of the measured ones. waited: until the devices were there, times their number.

    preempted: held by pods that were preempted. borrowed: beyond the quota of the virtual cluster.
    """

    pods: int = 0
    held: int = 0
    measured: int | None = None
    busy: int | None = None
    waited: int | None = None
    preempted: int | None = None
    preemptions: int | None = None
    borrowed: int | None = None

    def plus(self, other: Amounts) -> Amounts:
        """The sum of what is known."""
        sums = {it.name: _sum((getattr(self, it.name), getattr(other, it.name))) for it in fields(self)}
        return Amounts(**sums)  # type: ignore[arg-type]  # pods and held are always known


@dataclass(frozen=True, slots=True)
class Account:
    """The amounts of a period by a key, the largest first. "" is the name of what the ledger does not say.

    estimated: pods with an end that no object said. unseen: pods that may have gone on after they were last seen.
    """

    period: Period
    by: Key
    rows: tuple[tuple[str, Amounts], ...]
    total: Amounts
    estimated: int
    unseen: int


@dataclass(frozen=True, slots=True)
class LedgerNames:
    """Names that the ledger does not have. groups: by namespace. skus: of the nodes of the layout."""

    groups: Mapping[str, str]
    skus: Mapping[str, str]

    def of(self, hold: Hold, by: Key) -> str:
        """The row that a pod belongs to."""
        group = self.groups.get(hold.namespace, hold.namespace)
        match by:
            case "user":
                return hold.user
            case "group":
                return group
            case "virtual-cluster":
                return hold.cluster
            case "job":
                return f"{group}/{hold.user}/{hold.job}" if hold.job else ""
            case "sku":
                return hold.sku or self.skus.get(hold.node, "")
            case "node":
                return hold.node


def account_of(ledger: Ledger, period: Period, by: Key, names: LedgerNames, now: int) -> Account:
    """The account of a period. now: a pod that holds devices counts until then."""
    holds = [replace(hold, end=_until(hold, now)) for hold in ledger.holds.values()]
    borrowed = _borrowed(holds, ledger.quotas, period)
    rows: dict[str, Amounts] = {}
    counted: set[str] = set()
    for hold in holds:
        amounts = _amounts(hold, period, borrowed.get(hold.uid), open_=ledger.holds[hold.uid].end is None)
        if amounts.held or amounts.waited:
            name = names.of(hold, by)
            rows[name] = rows.get(name, Amounts()).plus(amounts)
            counted.add(hold.uid)
    ordered = sorted(rows.items(), key=lambda row: (-row[1].held, row[0]))
    total = Amounts()
    for _, amounts in ordered:
        total = total.plus(amounts)
    own = [ledger.holds[uid] for uid in counted]
    unseen = [one for one in own if one.end is None and now - one.seen > FRESH_S and one.seen < period.end]
    return Account(period, by, tuple(ordered), total, sum(one.estimated for one in own), len(unseen))


def _until(hold: Hold, now: int) -> int:
    if hold.end is not None:
        return hold.end
    return max(hold.start, now if now - hold.seen <= FRESH_S else hold.seen)


def _amounts(hold: Hold, period: Period, borrowed: int | None, *, open_: bool) -> Amounts:
    end = hold.end if hold.end is not None else hold.start
    held = hold.devices * period.overlap(hold.start, end)
    measured, busy = _work(hold, end, period)
    waited = None if hold.queued is None else hold.devices * period.overlap(hold.queued, hold.start)
    known = bool(hold.reason) or open_
    taken = hold.reason == PREEMPTED
    within = period.start <= end < period.end
    return Amounts(
        pods=1,
        held=held,
        measured=measured,
        busy=busy,
        waited=waited,
        preempted=(held if taken else 0) if known else None,
        preemptions=int(taken and within) if known else None,
        borrowed=borrowed,
    )


def _work(hold: Hold, end: int, period: Period) -> tuple[int | None, int | None]:
    """Measured and busy GPU seconds in the period. A node cannot report more than the pod held."""
    if not hold.samples:
        return None, None
    points = [(hold.start, 0, 0)]
    for sample in hold.samples:
        at, (before, measured, busy) = min(sample.at, end), points[-1]
        if at > before:
            # A node writes these samples. A false one must not give its user more time than there was.
            more = max(0, min(sample.measured - measured, hold.devices * (at - before)))
            points.append((at, measured + more, busy + max(0, min(sample.busy - busy, more))))
    first, last = (_until_then(points, edge) for edge in (period.start, period.end))
    return last[0] - first[0], last[1] - first[1]


def _until_then(points: Sequence[tuple[int, int, int]], at: int) -> tuple[int, int]:
    """Measured and busy until a time: between two samples in proportion, so that adjacent periods have it all."""
    place = bisect_right(points, (at, 1 << 62, 1 << 62))
    if place == 0:
        return 0, 0
    start, *before = points[place - 1]
    if place == len(points):
        return before[0], before[1]
    end, *after = points[place]
    measured, busy = (
        low + (high - low) * (at - start) // (end - start) for low, high in zip(before, after, strict=True)
    )
    return measured, busy


def _borrowed(holds: Iterable[Hold], quotas: Iterable[Quota], period: Period) -> Mapping[str, int]:
    """UID -> GPU seconds beyond the quota of its virtual cluster. The pods that came last are those that borrow."""
    by_queue: dict[tuple[str, str], list[Hold]] = {}
    for hold in holds:
        if hold.cluster and hold.flavor:
            by_queue.setdefault((hold.cluster, hold.flavor), []).append(hold)
    known = sorted(quotas, key=lambda quota: (quota.at, quota.units))
    found: dict[str, int] = {}
    for (cluster, flavor), own in by_queue.items():
        steps = [(quota.at, dict(quota.units).get(flavor, 0)) for quota in known if quota.cluster == cluster]
        for start, end, active, quota in _segments(own, steps, period):
            for uid, devices in _beyond(active, quota):
                found[uid] = found.get(uid, 0) + devices * (end - start)
    return found


def _segments(
    holds: Sequence[Hold], steps: Sequence[tuple[int, int]], period: Period
) -> Iterator[tuple[int, int, Iterable[Hold], int]]:
    """The times between changes of pods or quota, from the first known quota on."""
    if not steps:
        return
    ends = [hold.end for hold in holds if hold.end is not None]
    edges = {period.start, period.end, *(hold.start for hold in holds), *ends, *(at for at, _ in steps)}
    # Before the first known quota no one can say what was borrowed.
    cuts = sorted(edge for edge in edges if max(period.start, steps[0][0]) <= edge <= period.end)
    upcoming = sorted(holds, key=_age)
    active: list[Hold] = []
    for start, end in pairwise(cuts):
        while upcoming and upcoming[0].start <= start:
            active.append(upcoming.pop(0))
        active = [hold for hold in active if (hold.end or 0) > start]
        quota = next(units for at, units in reversed(steps) if at <= start)
        yield start, end, active, quota


def _age(hold: Hold) -> tuple[int, str]:
    return hold.start, hold.uid


def _beyond(holds: Iterable[Hold], quota: int) -> Iterator[tuple[str, int]]:
    left = quota
    for hold in holds:
        within = min(left, hold.devices)
        left -= within
        yield hold.uid, hold.devices - within


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
