"""The state of a site as a result: `status --format json`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pai_install.errors import ExitCode
from pai_install.json_schema import ExitStatus, Report, ReportObject
from pai_install.monitoring.alertmanager import FiringAlert
from pai_install.report.findings import FindingEntry, finding_entries
from pai_install.report.site_status import ConsoleAccess, LastRun, SiteStatus, state_of
from pai_install.site.summary import roles


class MachineState(ReportObject):
    """A machine of the site."""

    name: str
    address: str
    roles: tuple[str, ...]
    absent: bool
    state: str
    versions: Mapping[str, str]
    drift: tuple[str, ...]


class StatusReport(Report, title="pai-install status"):
    """The state of a site."""

    schema_version: Literal[2] = 2
    ok: bool
    exit_code: ExitStatus
    looked: bool
    compared: bool
    machines: tuple[MachineState, ...]
    findings: tuple[FindingEntry, ...]
    unproven: Mapping[str, str]
    console: ConsoleAccess | None
    alerts: tuple[FiringAlert, ...] | None
    last_run: LastRun | None
    running: str
    interrupted: str


def status_report(status: SiteStatus) -> StatusReport:
    """Returns the state of a site as a result."""
    drift = status.drift
    return StatusReport(
        ok=status.exit_code is ExitCode.OK,
        exit_code=status.exit_code,
        looked=status.plan is not None,
        compared=status.plan is not None and status.compared,
        machines=tuple(
            MachineState(
                name=machine.hostname,
                address=machine.hostip,
                roles=tuple(roles(machine)),
                absent=machine.absent,
                state=state_of(machine, status),
                versions=status.versions.get(machine.hostname, {}),
                drift=drift.get(machine.hostname, ()),
            )
            for machine in status.site.machines
        ),
        findings=finding_entries(status.findings or ()),
        unproven=status.unproven,
        console=status.console,
        alerts=status.alerts,
        last_run=status.last_run,
        running=status.running,
        interrupted=status.interrupted,
    )
