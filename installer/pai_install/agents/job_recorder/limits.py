"""Whether a job is to be warned, or what comes after that. Pure: a function of what is known, and of nothing else.

All times but `now` are of the machines that measured. Grace is counted in what they measured after the warning, so a
clock that is set here ends no grace; one that is set there makes what was before unknown (roles/gpu_use).
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
    """What a job was told. at: until when it was known to be so then. done: whether what comes after it was done."""

    what: str
    then: str
    at: float
    grace_s: float
    done: bool = False


class Verdict(Enum):
    """What to do about a job."""

    NOTHING = "nothing"
    WARN = "warn"
    CLEAR = "clear"
    ACT = "act"


def verdict(limit: Limit, evidence: Evidence | None, warned: Warned | None, now: float) -> Verdict:
    """By one limit. evidence: None where it is not known. warned: by this limit.

    Nothing is done about what is not known, and nothing but a warning without a warning of the whole grace before it,
    in all of which it was so.
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
    if limit.then != "warn" and evidence.at - warned.at >= max(limit.grace_s, warned.grace_s):
        return Verdict.ACT
    return Verdict.NOTHING


def read_limits(given: Mapping[str, Any]) -> Mapping[str, tuple[Limit, ...]]:
    """Virtual cluster -> its limits, as the role writes them. Raises KeyError, TypeError."""
    return {cluster: tuple(_limit(row) for row in found) for cluster, found in given.items()}


def _limit(row: Mapping[str, Any]) -> Limit:
    return Limit(row["what"], row["busy_below"], row["after_s"], row["then"], row["grace_s"])
