"""The state of a site: machines, cluster, drift, the last run, and all as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pai_install.checks.finding import Finding, worst
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.json_schema import ExitStatus, Seconds
from pai_install.monitoring.alertmanager import FiringAlert
from pai_install.plan.model import Plan
from pai_install.plan.partial_upgrade import CHECK as UPGRADE_LEFT
from pai_install.plan.planner import STORE
from pai_install.report.alerts import summary_line
from pai_install.site.model import Machine, Site
from pai_install.site.summary import roles


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest report. left: host -> titles of phases that still had to run."""

    name: str
    exit_code: ExitStatus
    duration_s: Seconds
    left: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ConsoleAccess:
    """Addresses of the console, and the SHA-256 fingerprint of its certificate, "" before the first run."""

    addresses: tuple[str, ...]
    fingerprint: str

    @property
    def lines(self) -> tuple[str, ...]:
        """The same for people."""
        shown = f"console: {' '.join(self.addresses)}"
        return (shown, f"certificate of the console: SHA-256 {self.fingerprint}") if self.fingerprint else (shown,)


@dataclass(frozen=True, slots=True)
class SiteStatus:
    """All data of `status`. plan and findings are None if the machines were not observed.

    running: current user of the site. interrupted: name of an unfinished run. continued_by: the command that resumes
    it.
    versions: host -> program -> version. compared: the machines were compared with the site, which needs its components
    on the controller host. look: result of the observation.
    unproven: machine -> why it is not verified. proof_failed: the last verification of a machine failed. console: None
    for a site without one. alerts: that fire, None without monitoring or an answer.
    """

    site: Site
    plan: Plan | None = None
    findings: tuple[Finding, ...] | None = None
    last_run: LastRun | None = None
    running: str = ""
    interrupted: str = ""
    continued_by: str = "apply"
    versions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    compared: bool = True
    look: ExitCode = ExitCode.OK
    unproven: Mapping[str, str] = field(default_factory=dict)
    proof_failed: bool = False
    console: ConsoleAccess | None = None
    alerts: tuple[FiringAlert, ...] | None = None

    @property
    def upgrading(self) -> bool:
        """Whether an upgrade is under way."""
        return any(finding.id == UPGRADE_LEFT for finding in self.findings or ())

    @property
    def exit_code(self) -> ExitCode:
        """Returns the code of the observation, else 7 for a failed check or an unverified cluster, else 0.

        Drift alone is no error. Unverified machines with drift are no error either, because apply repairs both.
        """
        if self.look is not ExitCode.OK:
            return self.look
        unfinished = self.unproven and self.plan is not None and self.compared and not self.drift
        if worst(self.findings or ()) is Verdict.FAIL or self.proof_failed or unfinished:
            return ExitCode.VERIFICATION_FAILED
        return ExitCode.OK

    @property
    def drift(self) -> dict[str, tuple[str, ...]]:
        """Returns host -> "PHASE: reason" for all changes that apply would make, or {} without changes or observation.

        During an upgrade the component store contains the new versions. This is no drift: apply would also restore the
        old versions for the pending machines.
        """
        found: dict[str, list[str]] = {}
        for step in self.plan.steps if self.plan else ():
            left_out = step.proves or (step.name == STORE and self.upgrading)
            for host in () if left_out else step.hosts:
                found.setdefault(host.host, []).extend(f"{step.name}: {reason}" for reason in host.reasons)
        return {host: tuple(reasons) for host, reasons in found.items()}


def last_run_of(name: str, report: Mapping[str, Any]) -> LastRun:
    """Parses the last run for `status` from its report's JSON."""
    left: dict[str, list[str]] = {}
    for phase in report.get("phases", ()):
        for host, result in phase["hosts"].items():
            if result["status"] not in ("ok", "changed"):
                left.setdefault(host, []).append(phase["title"])
    return LastRun(
        name,
        int(report.get("exit_code", ExitCode.INTERNAL)),
        float(report.get("duration_s", 0.0)),
        {host: tuple(titles) for host, titles in left.items()},
    )


def status_text(status: SiteStatus) -> str:
    """Returns the state for people."""
    return "\n".join(_lines(status)) + "\n"


def state_of(machine: Machine, status: SiteStatus) -> str:
    """Returns the state of a machine in a few words: absent, not observed, not reached, or the result of its checks.

    Problems replace the summary. The expiry of certificates is always shown.
    """
    if machine.absent:
        return "absent"
    if status.plan is None:
        return "not observed"
    if machine.hostname in status.plan.unreachable:
        return "not reached"
    checks = [finding for finding in status.findings or () if finding.subject == machine.hostname]
    bad = [finding for finding in checks if finding.verdict is not Verdict.PASS]
    dates = [finding for finding in checks if finding.id == "certificates" and finding not in bad]
    return "; ".join(finding.message for finding in ([*bad, *dates] if bad else checks)) or "answers"


def _lines(status: SiteStatus) -> Iterator[str]:
    rows = [
        (
            machine.hostname,
            machine.hostip,
            ", ".join(roles(machine)) or "-",
            ", ".join(status.versions.get(machine.hostname, {}).values()),
            state_of(machine, status),
        )
        for machine in status.site.machines
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:4], widths, strict=True) if width]
        yield "  ".join([*cells, row[4]])
    yield from _notes(status)


def _compared(status: SiteStatus) -> Iterator[str]:
    """Yields the result of the comparison of machines and site, unless they differ or were not observed."""
    if status.plan is None:
        return
    if not status.compared:
        yield "not compared with the site: components are missing on the controller host; pai-install components fetch"
    elif status.plan.silent:
        yield "no machine answered: nothing was compared with the site"
    elif not (status.drift or status.upgrading):
        yield "every machine that answered matches the site"


def _notes(status: SiteStatus) -> Iterator[str]:
    names = {machine.hostname for machine in status.site.machines}
    for finding in status.findings or ():
        if finding.subject not in names and finding.verdict is not Verdict.SKIP:
            yield f"{finding.verdict.value} {finding.subject}: {finding.message}"
    for host, why in (status.plan.unreachable if status.plan else {}).items():
        yield f"{host} was not reached: {why}"
    for host, reasons in status.drift.items():
        yield f"{host} differs from the site:"
        yield from (f"  {reason}" for reason in reasons)
    yield from _compared(status)
    for host, why in status.unproven.items():
        yield f"{host} is not proven: {why}; run pai-install verify"
    if status.alerts is not None:
        yield summary_line(status.alerts)
    if status.console:
        yield from status.console.lines
    if status.running:
        yield f"running now: {status.running}"
    if status.interrupted:
        yield f"the run {status.interrupted} was interrupted; {status.continued_by} continues it"
    yield _last_run(status.last_run)


def _last_run(run: LastRun | None) -> str:
    if run is None:
        return "no run yet"
    left = "; ".join(f"{host}: {', '.join(titles)}" for host, titles in run.left.items())
    return f"last run {run.name}: exit code {run.exit_code}{f'; left to do: {left}' if left else ''}"
