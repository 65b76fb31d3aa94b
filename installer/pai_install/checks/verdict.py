"""Verdicts, and the actions for an administrator. Every room may import this."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """The conclusion of a check. A missing value is UNKNOWN, never PASS."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    WARN = "WARN"
    FAIL = "FAIL"
    SKIP = "SKIP"
    UNKNOWN = "UNKNOWN"


# The gravest first, in every report and for every sum. UNKNOWN comes before WARN: unseen, it may hide a FAIL,
# while a WARN was seen and works. SKIP comes after PASS: a check that does not apply says nothing about its subject.
GRAVITY = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.WARN, Verdict.PASS, Verdict.SKIP)
OPEN = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.WARN)  # needs attention
CALM = (Verdict.PASS, Verdict.SKIP)
_RANK = {verdict: rank for rank, verdict in enumerate(GRAVITY)}


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    """Returns the first of GRAVITY among the verdicts, or SKIP without verdicts, because nothing was checked."""
    return min(verdicts, key=_RANK.__getitem__, default=Verdict.SKIP)


class Action(StrEnum):
    """The action for an administrator, cheapest first."""

    NONE = "none"
    CONFIG = "config"
    RESET_GPU = "reset_gpu"
    DRAIN = "drain"
    REBOOT = "reboot"
    RMA = "rma"

    @property
    def rank(self) -> int:
        """Position in the order above."""
        return _COST[self]


_COST = {action: rank for rank, action in enumerate(Action)}


def costliest(actions: Iterable[Action]) -> Action:
    """Returns the last of Action among the actions, or NONE without actions."""
    return max(actions, key=_COST.__getitem__, default=Action.NONE)
