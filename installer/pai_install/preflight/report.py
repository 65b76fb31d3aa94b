"""The result of a preflight: exit code, JSON form, text form; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pai_install.checks.finding import Finding, worst
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.preflight.judge import check_ids
from pai_install.preflight.model import BOX

SCHEMA_VERSION = 1
_SHOWN_MACHINES = 5
_ORDER = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.WARN, Verdict.PASS, Verdict.SKIP)


@dataclass(frozen=True, slots=True)
class PreflightReport:
    """findings: of all machines. forced: checks whose FAILs were made WARNs by the user. duration_s: seconds."""

    site: str
    findings: tuple[Finding, ...]
    forced: tuple[str, ...] = ()
    duration_s: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether no check fails."""
        return not any(finding.verdict is Verdict.FAIL for finding in self.findings)

    @property
    def warnings(self) -> int:
        """How many checks warn."""
        return sum(finding.verdict is Verdict.WARN for finding in self.findings)

    @property
    def exit_code(self) -> ExitCode:
        """OK, or PREFLIGHT_FAILED when a check fails."""
        return ExitCode.OK if self.ok else ExitCode.PREFLIGHT_FAILED

    @property
    def subjects(self) -> dict[str, list[Finding]]:
        """Machine or this box -> its findings, in order of appearance."""
        found: dict[str, list[Finding]] = {}
        for finding in self.findings:
            found.setdefault(finding.subject, []).append(finding)
        return found

    def as_json(self) -> dict[str, Any]:
        """The published form: {schema_version, ok, exit_code, site, duration_s, forced, verdicts, machines, findings}.

        machines: NAME -> gravest verdict. findings: every one, also PASS and SKIP.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "ok": self.ok,
            "exit_code": int(self.exit_code),
            "site": self.site,
            "duration_s": round(self.duration_s, 3),
            "forced": list(self.forced),
            "verdicts": counts(self.findings),
            "machines": {name: worst(found).value for name, found in self.subjects.items() if name != BOX},
            "findings": [finding.as_json() for finding in self.findings],
        }


def counts(findings: Sequence[Finding]) -> dict[str, int]:
    """Verdict -> how many; all five are always there."""
    found = Counter(finding.verdict for finding in findings)
    return {verdict.value: found[verdict] for verdict in _ORDER}


def text(report: PreflightReport, *, everything: bool = False) -> str:
    """For people: one line per machine, then what is wrong, the gravest first, alike things once.

    everything: also what is right or was skipped.
    """
    lines = [*_machine_lines(report)]
    for verdict in _ORDER if everything else _ORDER[:3]:
        lines += _verdict_lines([finding for finding in report.findings if finding.verdict is verdict])
    if report.forced:
        lines += ["", f"forced by you, no longer in the way: {', '.join(report.forced)}"]
    return "\n".join([*lines, "", last_line(report)]) + "\n"


def _machine_lines(report: PreflightReport) -> Iterator[str]:
    width = max((len(name) for name in report.subjects), default=0)
    for name, findings in report.subjects.items():
        number = counts(findings)
        told = ", ".join(f"{number[verdict.value]} {verdict}" for verdict in _ORDER if number[verdict.value])
        yield f"{name:<{width}}  {worst(findings).value:<7}  {told}"


def _verdict_lines(findings: Sequence[Finding]) -> Iterator[str]:
    alike: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.id, finding.message, finding.remedy), []).append(finding)
    for (check, message, remedy), group in alike.items():
        yield ""
        yield f"{group[0].verdict.value} {message} [{check}]"
        for finding in group[:_SHOWN_MACHINES]:
            seen = f": {finding.value}" if finding.value else ""
            wanted = f" (expected: {finding.expected})" if finding.expected else ""
            yield f"  {finding.subject}{seen}{wanted}"
        if len(group) > _SHOWN_MACHINES:
            yield f"  and {len(group) - _SHOWN_MACHINES} more"
        if remedy:
            yield f"  what to do: {remedy}"


def last_line(report: PreflightReport) -> str:
    """The sentence that says whether the machines are ready."""
    number = counts(report.findings)
    machines = [name for name in report.subjects if name != BOX]
    checked = f"{len(machines)} machine{'' if len(machines) == 1 else 's'} looked at in {report.duration_s:.0f} s"
    if report.ok:
        return f"ready to install: {checked}, {report.warnings} warnings"
    ids = dict.fromkeys(finding.id for finding in report.findings if finding.verdict is Verdict.FAIL)
    return (
        f"not ready: {number['FAIL']} failures ({', '.join(ids)}), {checked};"
        " `--force-check ID` lets one pass, at your own risk"
    )


def check_table() -> list[tuple[str, str]]:
    """Id and meaning of every check, for --list-checks and the documentation."""
    return sorted(check_ids().items())
