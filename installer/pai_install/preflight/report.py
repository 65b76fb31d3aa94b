"""The result of a preflight: exit code and text form. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pai_install.checks.finding import Finding
from pai_install.checks.report.html import ReportMachine
from pai_install.checks.report.text import by_subject, finding_lines, subject_lines
from pai_install.checks.verdict import GRAVITY, OPEN, Verdict
from pai_install.errors import ExitCode
from pai_install.preflight.model import BOX
from pai_install.system.words import plural


@dataclass(frozen=True, slots=True)
class PreflightReport:
    """findings: of all machines. forced: checks that the user downgraded from FAIL to WARN. duration_s: seconds.

    machines: of the site, for formats with role, SKU, and address.
    """

    site: str
    findings: tuple[Finding, ...]
    forced: tuple[str, ...] = ()
    duration_s: float = 0.0
    machines: tuple[ReportMachine, ...] = ()

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
        """Machine or the controller host -> its findings, in order of appearance."""
        return by_subject(self.findings)


def text(report: PreflightReport, *, everything: bool = False) -> str:
    """Returns text for people: one line per machine, then problems, worst first, equal ones once.

    everything: also passed and skipped checks.
    """
    lines = [*subject_lines(report.subjects)]
    lines += finding_lines(report.findings, GRAVITY if everything else OPEN)
    if report.forced:
        lines += ["", f"passed by --force-check: {', '.join(report.forced)}"]
    return "\n".join([*lines, "", last_line(report)]) + "\n"


def last_line(report: PreflightReport) -> str:
    """The sentence that says whether the machines are ready."""
    machines = [name for name in report.subjects if name != BOX]
    checked = f"{plural(len(machines), 'machine')} checked in {report.duration_s:.0f} s"
    if report.ok:
        return f"ready to install: {checked}, {plural(report.warnings, 'warning')}"
    failing = [finding.id for finding in report.findings if finding.verdict is Verdict.FAIL]
    return (
        f"not ready: {plural(len(failing), 'failure')} ({', '.join(dict.fromkeys(failing))}), {checked}. "
        "Run with `--force-check ID` to ignore a failure at your own risk"
    )
