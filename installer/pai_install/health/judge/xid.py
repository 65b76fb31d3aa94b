"""Xid numbers: their meanings, and the merge of a burst to one incident with the verdict of its worst Xid."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pai_install.checks.verdict import Action, Verdict
from pai_install.health.evidence.parse.kernel_log import Xid
from pai_install.health.judge.meaning import RANK, XidMeaning
from pai_install.health.judge.nvlink_error import LinkFault, link_faults, with_link

FOLLOWERS = frozenset({43, 45, 154})  # come after the fault that matters, and are never its cause
APPLICATION = "application"
_RECOVERY_ACTION = 154
_RESETS = frozenset({1, 4})  # recovery actions: GPU reset, drain and reset
# a reboot helps these, too. A reset is enough if the driver says so
_OF_GSP = frozenset({119, 120})
NVLINK_ERROR = 74
_GRAVER_THAN_SAID = ("RLW_RXPIPE",)  # its lines say Nonfatal of lost packets


@dataclass(frozen=True, slots=True)
class Incident:
    """Related Xids of one GPU. cause: the worst Xid that is no consequence. meaning: of the cause.

    gravest: the meaning that decides the verdict. ended: the GPU reported later that no action is needed.
    """

    bus_id: str
    cause: Xid
    meaning: XidMeaning
    gravest: XidMeaning
    members: tuple[Xid, ...]
    fatal: frozenset[int] = frozenset()
    ended: bool = False

    @property
    def last_time(self) -> float | None:
        """Returns the time of the last Xid, or None if the log has no time stamps."""
        times = [xid.time for xid in self.members if xid.time is not None]
        return max(times) if times else None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The different numbers in it, in order."""
        return tuple(dict.fromkeys(xid.number for xid in self.members))


def meaning_of(xid: Xid, catalogue: Mapping[int, XidMeaning]) -> XidMeaning:
    """The catalogue's row, refined by its line: 154 its action, 74 its link, 144-150 the unit, 45 its cause."""
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
    if xid.number == _RECOVERY_ACTION:
        return _recovery(xid, known)
    if xid.number == NVLINK_ERROR:
        return with_link(known, xid.text)
    if xid.previous is not None and xid.previous != xid.number:
        cause = meaning_of(Xid(xid.previous, xid.bus_id, xid.time, ""), catalogue)
        return replace(cause, name=f"{known.name}, here Xid {cause.number} ({cause.name})")
    return _decoded(xid, known) if xid.fatal is not None else _by_phrase(xid, known)


def _by_phrase(xid: Xid, known: XidMeaning) -> XidMeaning:
    """Returns the meaning of the line's own words, or that of the number."""
    note = next((item for item in known.phrases if item.words in xid.text), None)
    if note is None:
        return known
    return replace(known, name=note.name, verdict=note.verdict, action=note.action, remedy=note.remedy)


def failing_links(incident: Incident) -> dict[str, LinkFault]:
    """Link -> its fault, of the links of a GPU that an incident shows to be at fault themselves (Xid 74)."""
    texts = [xid.text for xid in incident.members if xid.number == NVLINK_ERROR]
    return {fault.link: fault for fault in link_faults(texts)}


def _decoded(xid: Xid, known: XidMeaning) -> XidMeaning:
    """Returns the meaning from NVIDIA's table of units, status, and sub-codes. Without a row, the line decides."""
    for row in known.decodes:
        same = row.status in (None, xid.status) and row.sub_code in (None, xid.sub_code)
        # The table does not make a fault worse than its own line says, with the units above as exceptions.
        tame = row.verdict is Verdict.FAIL and xid.fatal is False and xid.unit not in _GRAVER_THAN_SAID
        if same and not tame and xid.unit and xid.unit in row.unit.split("/"):
            action = known.action if row.verdict is Verdict.FAIL else Action.NONE
            name = f"{known.name}, {xid.unit} status {xid.status:#x}"
            return replace(known, name=name, verdict=row.verdict, action=action, remedy=row.remedy or known.remedy)
    if xid.fatal is False:
        return replace(known, verdict=Verdict.WARN, action=Action.NONE)
    return known


def _recovery(xid: Xid, known: XidMeaning) -> XidMeaning:
    verdict, action = {
        0: (Verdict.PASS, Action.NONE),
        1: (Verdict.FAIL, Action.RESET_GPU),
        2: (Verdict.FAIL, Action.REBOOT),
        3: (Verdict.WARN, Action.DRAIN),
        4: (Verdict.FAIL, Action.RESET_GPU),
    }.get(_requested_action(xid), (Verdict.WARN, Action.NONE))
    return replace(known, verdict=verdict, action=action)


def _eased(meaning: XidMeaning, xids: Sequence[Xid]) -> XidMeaning:
    """Returns a reset in place of a reboot if the driver's last recovery action of this incident is a reset."""
    actions = [_requested_action(xid) for xid in xids if xid.number == _RECOVERY_ACTION]
    if meaning.number in _OF_GSP and actions and actions[-1] in _RESETS:
        return replace(meaning, action=Action.RESET_GPU, remedy="reset the GPU, as requested by its driver")
    return meaning


def _requested_action(xid: Xid) -> int:
    """Returns the new recovery action in an Xid 154, or -1."""
    match = re.search(r"to (0x[0-9a-fA-F]{1,8})\b", xid.text)
    return int(match.group(1), 16) if match else -1


def merge(xids: Iterable[Xid], gap_s: float, catalogue: Mapping[int, XidMeaning]) -> tuple[Incident, ...]:
    """Returns the incidents of each GPU. Xids less than `gap_s` apart belong together. Without time stamps, all do.

    A 154 to None ends all earlier Xids of that GPU. Later ones are another incident.
    """
    by_gpu: dict[str, list[Xid]] = {}
    for xid in xids:
        by_gpu.setdefault(xid.bus_id, []).append(xid)
    return tuple(
        incident for bus_id, found in sorted(by_gpu.items()) for incident in _incidents(bus_id, found, gap_s, catalogue)
    )


def _incidents(bus_id: str, xids: Sequence[Xid], gap_s: float, catalogue: Mapping[int, XidMeaning]) -> list[Incident]:
    groups: list[list[Xid]] = []
    ended = 0
    for xid in sorted(xids, key=lambda item: item.time or 0):
        if groups and xid.number == _RECOVERY_ACTION and _requested_action(xid) == 0:
            ended = len(groups)
            continue
        last = groups[-1][-1].time if groups else None
        if len(groups) > ended and (last is None or xid.time is None or xid.time - last < gap_s):
            groups[-1].append(xid)
        else:
            groups.append([xid])
    return [_incident(bus_id, group, catalogue, ended=number < ended) for number, group in enumerate(groups)]


def _incident(bus_id: str, xids: Sequence[Xid], catalogue: Mapping[int, XidMeaning], *, ended: bool) -> Incident:
    numbers = {xid.number for xid in xids}
    meanings = [(xid, _eased(meaning_of(xid, catalogue), xids)) for xid in xids]
    causes = [
        item
        for item in meanings
        if item[0].number not in FOLLOWERS or (item[0].previous is not None and item[0].previous not in numbers)
    ]
    worst, gravest = max(meanings, key=lambda item: item[1].gravity)  # the first of several
    cause, meaning = max(causes or meanings, key=lambda item: item[1].gravity)
    if RANK[gravest.verdict] > RANK[meaning.verdict]:
        cause, meaning = worst, gravest
    # Xid 154 only says what the driver asks for. It is no fault that could return.
    fatal = frozenset(item.number for xid, item in meanings if item.verdict is Verdict.FAIL and xid.number != 154)
    return Incident(bus_id, cause, meaning, gravest, tuple(xids), fatal, ended)
