"""One verdict of one check about one subject: the same for every room and every report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pai_install.checks.verdict import GRAVITY, Action, Verdict, gravest


class Finding(NamedTuple):  # a tuple: a thousand machines with eight GPUs make a third of a million
    """One verdict about one subject.

    id: the check, kebab-case, such as "cluster-dns". subject: a machine, "cluster", or "controller host". device: bus
    id, port, or disk. message: one sentence. value, expected: current and desired value. remedy: empty for PASS and
    SKIP. source: origin of the rule or limit. evidence: the values read.
    """

    id: str
    verdict: Verdict
    subject: str
    message: str
    value: str = ""
    expected: str = ""
    remedy: str = ""
    device: str = ""
    action: Action = Action.NONE
    source: str = ""
    evidence: str = ""

    @property
    def where(self) -> str:
        """The subject, and the device where there is one."""
        return f"{self.subject} {self.device}" if self.device else self.subject


def parse_finding(raw: Mapping[str, Any], *, subject: str = "") -> Finding:
    """Parses a finding from a module or a file. `subject` is the default.

    A missing or unknown verdict becomes UNKNOWN, never PASS.
    """
    texts = {name: _text(raw.get(name)) for name in Finding._fields if name not in ("verdict", "action")}
    texts["id"] = texts["id"] or "unnamed"
    texts["subject"] = texts["subject"] or subject
    return Finding(verdict=_verdict(raw.get("verdict")), action=_action(raw.get("action")), **texts)


def _verdict(raw: object) -> Verdict:
    try:
        return Verdict(str(raw or "").upper())
    except ValueError:
        return Verdict.UNKNOWN


def _action(raw: object) -> Action:
    try:
        return Action(str(raw or "none"))
    except ValueError:
        return Action.NONE


def _text(value: object) -> str:
    return "" if value is None else str(value)


def worst(findings: Iterable[Finding]) -> Verdict:
    """Returns the worst verdict, or SKIP without findings."""
    return gravest(finding.verdict for finding in findings)


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Returns verdict -> number of findings, worst first, for all five verdicts."""
    found = Counter(finding.verdict for finding in findings)
    return {verdict.value: found[verdict] for verdict in GRAVITY}
