"""Verdict on a job: whether to warn its owner, and when to act. Pure: it depends on its arguments only.

All times but `now` come from the clocks of the measuring machines. The grace period is measured by them as well, so a
changed clock of this host ends no grace. After a change of their clock, earlier samples are unknown (roles/gpu_use).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pai_install.agents.common.utilization import STALE_S


@dataclass(frozen=True)
class Limit:
    """what: idle, long or notebook. below: percent. then: list, warn, stop or preemptible."""

    what: str
    below: int
    after_s: int
    then: str
    grace_s: int


@dataclass(frozen=True)
class Evidence:
    """That something holds since then, and until when that is known. Seconds since 1970."""

    since: float
    at: float


@dataclass(frozen=True)
class Warned:
    """The last warning of a job. at: end of its evidence. done: whether its action was taken."""

    what: str
    then: str
    at: float
    grace_s: float
    done: bool = False


class Verdict(Enum):
    """The next action on a job."""

    NOTHING = "nothing"
    WARN = "warn"
    CLEAR = "clear"
    ACT = "act"


def verdict(limit: Limit, evidence: Evidence | None, warned: Warned | None, now: float) -> Verdict:
    """Returns the verdict by one limit. evidence: None for unknown. warned: by this limit.

    Without evidence there is no action. After a warning, the action follows only if the evidence covers the whole grace
    period.
    """
    if limit.then == "list":
        return Verdict.CLEAR if warned is not None and not warned.done else Verdict.NOTHING
    if evidence is None or abs(now - evidence.at) > STALE_S or (warned is not None and warned.done):
        return Verdict.NOTHING
    holds = evidence.at - evidence.since >= limit.after_s
    if warned is None:
        return Verdict.WARN if holds else Verdict.NOTHING
    if not holds or evidence.since > warned.at or evidence.at < warned.at or warned.then != limit.then:
        return Verdict.CLEAR
    # A shorter grace in the site must not take time away that a user was promised.
    if limit.then != "warn" and evidence.at - warned.at >= max(limit.grace_s, warned.grace_s):
        return Verdict.ACT
    return Verdict.NOTHING


def read_limits(given: Mapping[str, Any]) -> Mapping[str, tuple[Limit, ...]]:
    """Virtual cluster -> its limits, as the role writes them. Raises KeyError, TypeError."""
    return {cluster: tuple(_limit(row) for row in found) for cluster, found in given.items()}


def _limit(row: Mapping[str, Any]) -> Limit:
    return Limit(row["what"], row["busy_below"], row["after_s"], row["then"], row["grace_s"])
