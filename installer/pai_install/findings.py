"""The verdict of one check: the word every room uses for what is right or wrong on a machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """What a check concluded. A missing value is UNKNOWN, never PASS."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    WARN = "WARN"
    FAIL = "FAIL"
    SKIP = "SKIP"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict about one subject.

    id: the check, kebab-case, e.g. "cluster-dns". subject: a machine, a device or "cluster".
    message: one sentence. value and expected: what was seen and what should be there, as text.
    remedy: what to do; empty for PASS and SKIP.
    """

    id: str
    verdict: Verdict
    subject: str
    message: str
    value: str = ""
    expected: str = ""
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        """The JSON form, every field as text."""
        return {name: str(value) for name, value in asdict(self).items()}


def parse_finding(raw: Mapping[str, Any], *, subject: str = "") -> Finding:
    """Builds a Finding from a module's or a file's mapping; `subject` is used where it names none.

    A verdict that is missing or not a known word becomes UNKNOWN: it must never read as PASS.
    """
    try:
        verdict = Verdict(str(raw.get("verdict", "")).upper())
    except ValueError:
        verdict = Verdict.UNKNOWN
    return Finding(
        id=str(raw.get("id") or "unnamed"),
        verdict=verdict,
        subject=str(raw.get("subject") or subject),
        message=str(raw.get("message", "")),
        value=_text(raw.get("value")),
        expected=_text(raw.get("expected")),
        remedy=_text(raw.get("remedy")),
    )


def worst(findings: Iterable[Finding]) -> Verdict:
    """The gravest verdict, FAIL first; PASS where there are none."""
    order = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.WARN, Verdict.PASS)
    seen = {finding.verdict for finding in findings}
    return next((verdict for verdict in order if verdict in seen), Verdict.PASS)


def _text(value: object) -> str:
    return "" if value is None else str(value)
