"""The meaning of an Xid: one row of xid.yml."""

from __future__ import annotations

from dataclasses import dataclass

from pai_install.checks.verdict import Action, Verdict

RANK = {Verdict.PASS: 0, Verdict.SKIP: 0, Verdict.UNKNOWN: 1, Verdict.WARN: 2, Verdict.FAIL: 3}


@dataclass(frozen=True, slots=True)
class Decode:
    """The meaning of one error of an NVLink 5 unit. status, sub_code: None for any."""

    unit: str
    status: int | None
    sub_code: int | None
    verdict: Verdict
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words of the driver that say more than the number of their Xid."""

    words: str
    name: str
    verdict: Verdict
    action: Action
    remedy: str


@dataclass(frozen=True, slots=True)
class XidMeaning:
    """One row of xid.yml. kind: application, hardware, link, display, memory, software, or info.

    decodes: meanings of the other values in an NVLink 5 line. phrases: meanings of the words in its line.
    """

    number: int
    name: str
    verdict: Verdict
    action: Action
    kind: str
    remedy: str = ""
    decodes: tuple[Decode, ...] = ()
    phrases: tuple[Phrase, ...] = ()

    @property
    def gravity(self) -> tuple[int, int]:
        """To compare: the verdict, then the action."""
        return RANK[self.verdict], self.action.rank
