"""What an Xid means: one row of xid.yml."""

from __future__ import annotations

from dataclasses import dataclass

from pai_install.checks.verdict import Action, Verdict

RANK = {Verdict.PASS: 0, Verdict.SKIP: 0, Verdict.UNKNOWN: 1, Verdict.WARN: 2, Verdict.FAIL: 3}


@dataclass(frozen=True, slots=True)
class Decode:
    """What one error of a unit of NVLink 5 means. status, sub_code: None for any."""

    unit: str
    status: int | None
    sub_code: int | None
    verdict: Verdict
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class XidMeaning:
    """One row of xid.yml. kind: application, hardware, link, display, memory, software or info.

    decodes: of what a line of NVLink 5 says beside its number.
    """

    number: int
    name: str
    verdict: Verdict
    action: Action
    kind: str
    remedy: str = ""
    decodes: tuple[Decode, ...] = ()

    @property
    def gravity(self) -> tuple[int, int]:
        """To compare: the verdict, then the action."""
        return RANK[self.verdict], self.action.rank
