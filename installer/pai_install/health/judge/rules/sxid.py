"""Errors of NVSwitches in the kernel log: SXids."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pai_install.checks.result import Result, failed, passed, warned
from pai_install.checks.verdict import Action, Verdict
from pai_install.health.evidence.parse.kernel_log import LogEvent, LogKind
from pai_install.health.evidence.parse.nvidia import normalise_bus_id
from pai_install.health.judge.catalogues import SxidMeaning, load_sxids
from pai_install.health.judge.check import machine_check
from pai_install.health.judge.view import MachineView

_SXID = re.compile(r"SXid \(((?:PCI:)?[0-9a-fA-F:.]+)\).*?: (\d{4,6})\b,?\s*(.*)")
_NONFATAL, _FATAL = re.compile(r"\bnon-?fatal\b", re.IGNORECASE), re.compile(r"\bFatal\b")
_UNLISTED = "not in the catalogue"
_RANK = {Verdict.PASS: 0, Verdict.WARN: 1, Verdict.FAIL: 2}


@machine_check(
    id="nvswitch-sxid",
    title="The NVSwitches report no errors (SXid)",
    reads="kernel log of this boot",
    rule="by number (see the SXid table) and the word Fatal of the line. FAIL within xid-window-hours, WARN later in "
    "the same boot",
    limits=("xid-window-hours",),
    source="NVIDIA's fabric manager guide; GPUD",
    remedy="reboot the machine. If the fault returns, replace the board",
    action=Action.REBOOT,
    gpus_only=True,
)
def sxid(machine: MachineView) -> Iterator[Result]:
    by_switch: dict[str, list[tuple[LogEvent, SxidMeaning]]] = {}
    for event in machine.events(LogKind.SXID):
        match = _SXID.search(event.text)
        device = normalise_bus_id(match.group(1)) if match else ""
        by_switch.setdefault(device, []).append((event, meaning_of(event.text)))
    results = [_of_switch(device, _as_reported(found), machine) for device, found in sorted(by_switch.items())]
    yield from results or [passed("none", "none")]


def meaning_of(text: str) -> SxidMeaning:
    """Returns the catalogue's row with the severity of the line. For unknown numbers, only the line decides."""
    match = _SXID.search(text)
    number = int(match.group(2)) if match else 0
    known = load_sxids().get(number)
    if _NONFATAL.search(text):
        mild = known is not None and known.verdict is Verdict.PASS
        return SxidMeaning(number, known.name if known else _UNLISTED, Verdict.PASS if mild else Verdict.WARN)
    if _FATAL.search(text):
        return SxidMeaning(number, known.name if known else _UNLISTED, Verdict.FAIL)
    return known or SxidMeaning(number, _UNLISTED, Verdict.WARN)


def _as_reported(found: Sequence[tuple[LogEvent, SxidMeaning]]) -> list[tuple[LogEvent, SxidMeaning]]:
    """Returns events with meanings. If one line of an error says Non-fatal, its data lines without a severity are
    non-fatal too.
    """
    meanings = {meaning.number: meaning for event, meaning in found if _NONFATAL.search(event.text)}
    return [
        (event, meaning if _FATAL.search(event.text) else meanings.get(meaning.number, meaning))
        for event, meaning in found
    ]


def _of_switch(device: str, found: Sequence[tuple[LogEvent, SxidMeaning]], machine: MachineView) -> Result:
    event, worst = max(found, key=lambda item: (_RANK[item[1].verdict], machine.recent(item[0].time)))
    numbers = ", ".join(dict.fromkeys(str(meaning.number) for _, meaning in found))
    value = f"{len(found)} lines ({numbers}), last: {found[-1][0].text}"
    message = f"SXid {worst.number}: {worst.name}"
    if worst.verdict is Verdict.FAIL and machine.recent(event.time):
        return failed(message, value, "none", device=device)
    if worst.verdict is Verdict.FAIL:
        return warned(f"{message}, earlier in this boot", value, "none", device=device, action=Action.REBOOT)
    if worst.verdict is Verdict.WARN and machine.recent(event.time):
        return warned(message, value, "none", device=device)
    return passed(value, "nothing that matters", device=device, message=message)
