"""The words of this room: what a check may conclude, and what its conclusion looks like."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict


class Action(StrEnum):
    """What an administrator should do; ordered by how much it costs in `rank`."""

    NONE = "none"
    CONFIG = "config"
    RESET_GPU = "reset_gpu"
    DRAIN = "drain"
    REBOOT = "reboot"
    RMA = "rma"

    @property
    def rank(self) -> int:
        """Position in the order above."""
        return list(Action).index(self)


class Judgement(NamedTuple):  # a tuple, as HealthFinding: a thousand machines make a third of a million of each
    """What a check function returns.

    device: a bus id, port, disk ... where it is not the GPU that was asked about. value, expected: as text.
    action and remedy: where they differ from the check's own. UNKNOWN and SKIP carry their reason in `message`.
    """

    verdict: Verdict
    message: str
    value: str = ""
    expected: str = ""
    device: str = ""
    action: Action | None = None
    remedy: str = ""


def passed(value: object = "", expected: object = "", *, device: str = "", message: str = "") -> Judgement:
    """A PASS; becomes UNKNOWN or SKIP when anything the check has read was not a value."""
    return Judgement(Verdict.PASS, message, str(value), str(expected), device)


def warned(
    message: str,
    value: object = "",
    expected: object = "",
    *,
    device: str = "",
    action: Action | None = None,
    remedy: str = "",
) -> Judgement:
    """A WARN: works, but somebody should look."""
    return Judgement(Verdict.WARN, message, str(value), str(expected), device, action or Action.NONE, remedy)


def failed(
    message: str,
    value: object = "",
    expected: object = "",
    *,
    device: str = "",
    action: Action | None = None,
    remedy: str = "",
) -> Judgement:
    """A FAIL with the check's own action, or another one."""
    return Judgement(Verdict.FAIL, message, str(value), str(expected), device, action, remedy)


def skipped(reason: str, *, device: str = "") -> Judgement:
    """The check does not apply here, and why."""
    return Judgement(Verdict.SKIP, reason, device=device)


def unknown(reason: str, value: object = "", *, device: str = "", remedy: str = "") -> Judgement:
    """The check could not be made, and why."""
    return Judgement(Verdict.UNKNOWN, reason, str(value), device=device, remedy=remedy)


class NotObservedError(Exception):
    """Evidence that a check needs is not there; `verdict` is SKIP or UNKNOWN."""

    def __init__(self, verdict: Verdict, reason: str) -> None:
        super().__init__(reason)
        self.verdict = verdict
        self.reason = reason


@dataclass(frozen=True, slots=True)
class CheckText:
    """What `health explain` and the documentation say of a check.

    threshold: the rule in words. source: who uses it (abbreviations in docs/health.md). remedy: what to do.
    """

    id: str
    title: str
    reads: str
    threshold: str
    source: str
    remedy: str
    action: Action = Action.CONFIG


class HealthFinding(NamedTuple):
    """One verdict. `threshold_source` says whose rule it is; `evidence` names what was read."""

    check: str
    machine: str
    device: str
    verdict: Verdict
    message: str
    value: str
    expected: str
    threshold_source: str
    evidence: str
    remedy: str
    action: Action

    @property
    def subject(self) -> str:
        """The machine, and the device where there is one."""
        return f"{self.machine} {self.device}".strip()

    def as_json(self) -> dict[str, Any]:
        """The JSON form; empty fields are left out."""
        return {name: str(value) for name in self._fields if (value := getattr(self, name)) != ""}

    def as_finding(self) -> Finding:
        """The form that every room uses."""
        remedy = self.remedy + (f" (action: {self.action.value})" if self.action is not Action.NONE else "")
        return Finding(self.check, self.verdict, self.subject, self.message, self.value, self.expected, remedy)


def finding_from_json(raw: dict[str, str]) -> HealthFinding:
    """The inverse of `as_json`."""
    names = ("check", "machine", "device", "message", "value", "expected", "threshold_source", "evidence", "remedy")
    return HealthFinding(
        verdict=Verdict(raw["verdict"]), action=Action(raw["action"]), **{name: raw.get(name, "") for name in names}
    )
