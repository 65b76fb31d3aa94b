"""Xid numbers: what each means, and how a burst of them becomes one incident with one cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pai_install.checks.verdict import Action, Verdict
from pai_install.health.evidence.parse.kernel_log import Xid

FOLLOWERS = frozenset({43, 45})  # come after the fault that matters, and are never its cause
APPLICATION = "application"


@dataclass(frozen=True, slots=True)
class XidMeaning:
    """One row of xid.yml. kind: application, hardware, link, display, memory, software or info."""

    number: int
    name: str
    verdict: Verdict
    action: Action
    kind: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Incident:
    """Xids of one GPU that belong together: the first that is no follower is the cause."""

    bus_id: str
    cause: Xid
    members: tuple[Xid, ...]

    @property
    def last_time(self) -> float | None:
        """When the last of them came; None when the log has no times."""
        times = [xid.time for xid in self.members if xid.time is not None]
        return max(times) if times else None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The different numbers in it, in order."""
        return tuple(dict.fromkeys(xid.number for xid in self.members))


def meaning_of(xid: Xid, catalogue: Mapping[int, XidMeaning]) -> XidMeaning:
    """The catalogue's row, refined by what the line itself says (154 its action, 144-150 fatal or not)."""
    known = catalogue.get(xid.number)
    if known is None:
        return XidMeaning(
            xid.number,
            "not in the catalogue",
            Verdict.WARN,
            Action.NONE,
            "unknown",
            "look it up in NVIDIA's Xid catalogue",
        )
    if xid.number == 154:
        return _recovery(xid, known)
    if xid.fatal is False:
        return XidMeaning(known.number, known.name, Verdict.WARN, Action.NONE, known.kind, known.remedy)
    return known


def _recovery(xid: Xid, known: XidMeaning) -> XidMeaning:
    match = re.search(r"to (0x[0-9a-fA-F]+)", xid.text)
    code = int(match.group(1), 16) if match else -1
    verdict, action = {
        0: (Verdict.PASS, Action.NONE),
        1: (Verdict.FAIL, Action.RESET_GPU),
        2: (Verdict.FAIL, Action.REBOOT),
        3: (Verdict.WARN, Action.DRAIN),
        4: (Verdict.FAIL, Action.RESET_GPU),
    }.get(code, (Verdict.WARN, Action.NONE))
    return XidMeaning(154, known.name, verdict, action, known.kind, known.remedy)


def merge(xids: Iterable[Xid], gap_s: float) -> tuple[Incident, ...]:
    """Incidents per GPU: Xids less than `gap_s` after the one before belong together; without times, all do."""
    by_gpu: dict[str, list[Xid]] = {}
    for xid in xids:
        by_gpu.setdefault(xid.bus_id, []).append(xid)
    return tuple(incident for bus_id, found in sorted(by_gpu.items()) for incident in _incidents(bus_id, found, gap_s))


def _incidents(bus_id: str, xids: Sequence[Xid], gap_s: float) -> list[Incident]:
    groups: list[list[Xid]] = []
    for xid in sorted(xids, key=lambda item: item.time or 0):
        last = groups[-1][-1].time if groups else None
        if groups and (last is None or xid.time is None or xid.time - last < gap_s):
            groups[-1].append(xid)
        else:
            groups.append([xid])
    return [Incident(bus_id, cause_of(group), tuple(group)) for group in groups]


def cause_of(xids: Sequence[Xid]) -> Xid:
    """The first that is not a follower; the first when all are."""
    return next((xid for xid in xids if xid.number not in FOLLOWERS), xids[0])
