"""Acknowledgements: a known verdict, the reason to accept it, and the expiry date."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import OPEN, Action, Verdict
from pai_install.errors import ExitCode, PaiError
from pai_install.system.words import minute_text

_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
# (machine, check, device) of a finding
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An accepted verdict on one machine or device.

    said: the cause at that time, without numbers. Another cause of the same check is another verdict. at, until:
    seconds since the epoch.
    """

    machine: str
    check: str
    device: str
    said: str
    who: str
    why: str
    at: float
    until: float

    @property
    def key(self) -> Key:
        """Returns machine, check, and device."""
        return self.machine, self.check, self.device

    @property
    def words(self) -> str:
        """Who judged it, until when and why, in one line."""
        return f"acknowledged by {self.who} until {spoken_end(self.until)}: {self.why}"

    def as_json(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)


def parse_acknowledgement(raw: Mapping[str, Any]) -> Acknowledgement:
    """The inverse of `as_json`. Raises KeyError, TypeError or ValueError for anything else."""
    texts = {name: str(raw[name]) for name in ("machine", "check", "device", "said", "who", "why")}
    return Acknowledgement(**texts, at=float(raw["at"]), until=float(raw["until"]))


def cause_of(finding: Finding) -> str:
    """Returns the cause without numbers that change from run to run. The number of an Xid stays."""
    return re.sub(r"(?<!Xid )\b\d+(?:\.\d+)?", "#", finding.message)


def key_of(finding: Finding) -> Key:
    """Returns machine, check, and device of a finding."""
    return finding.subject, finding.id, finding.device


def causes(findings: Iterable[Finding]) -> dict[str, str]:
    """Returns "CHECK DEVICE" -> cause, for all findings that need attention."""
    return {f"{item.id} {item.device}".strip(): cause_of(item) for item in findings if item.verdict in OPEN}


def apply(
    findings: Sequence[Finding], kept: Iterable[Acknowledgement], now: float
) -> tuple[tuple[Finding, ...], dict[Key, Acknowledgement]]:
    """Returns the findings with acknowledged ones as WARN without remedy, and the applied acknowledgements."""
    known = {item.key: item for item in kept if item.until > now}
    if not known:
        return tuple(findings), {}
    found: list[Finding] = []
    used: dict[Key, Acknowledgement] = {}
    for finding in findings:
        item = known.get(key_of(finding)) if finding.verdict in OPEN else None
        if item is None or item.said != cause_of(finding):
            found.append(finding)
            continue
        used[item.key] = item
        message = f"{item.words} ({finding.verdict.value}: {finding.message})"
        found.append(finding._replace(verdict=Verdict.WARN, message=message, action=Action.NONE, remedy=""))
    return tuple(found), used


def end_of(text: str, now: float) -> float:
    """When an acknowledgement ends: "2026-12-01" (00:00 UTC), or "12h", "7d", "2w" from now.

    Raises PaiError for other words, and for an end that is over.
    """
    if match := re.fullmatch(r"(\d{1,4})([hdw])", text.strip()):
        return now + int(match.group(1)) * _UNITS[match.group(2)].total_seconds()
    try:
        until = datetime.strptime(text.strip(), "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise PaiError(
            f"cannot read --until {text!r}: it is not a day or a duration",
            code="acknowledgement-end-invalid",
            remedy="write for example 2026-12-01, 12h, 7d, or 2w",
            exit_code=ExitCode.USAGE,
        ) from error
    if until <= now:
        raise PaiError(
            f"cannot use --until {text}: the day has passed",
            code="acknowledgement-end-past",
            remedy="choose a later day",
            exit_code=ExitCode.USAGE,
        )
    return until


def spoken_end(until: float) -> str:
    """The end as people write it, UTC."""
    return minute_text(datetime.fromtimestamp(until, UTC))
