"""The state of a site as a result: `status --format json`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pai_install.errors import ExitCode
from pai_install.json_schema import ExitStatus, Report, ReportObject
from pai_install.monitoring.alertmanager import FiringAlert
from pai_install.report.findings import FindingEntry, finding_entries
from pai_install.report.standing import ConsoleAccess, LastRun, Standing, state_of
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


def status_report(standing: Standing) -> StatusReport:
    """Returns the state of a site as a result."""
    drift = standing.drift
    return StatusReport(
        ok=standing.exit_code is ExitCode.OK,
        exit_code=standing.exit_code,
        looked=standing.plan is not None,
        compared=standing.plan is not None and standing.compared,
        machines=tuple(
            MachineState(
                name=machine.hostname,
                address=machine.hostip,
                roles=tuple(roles(machine)),
                absent=machine.absent,
                state=state_of(machine, standing),
                versions=standing.versions.get(machine.hostname, {}),
                drift=drift.get(machine.hostname, ()),
            )
            for machine in standing.site.machines
        ),
        findings=finding_entries(standing.findings or ()),
        unproven=standing.unproven,
        console=standing.console,
        alerts=standing.alerts,
        last_run=standing.last_run,
        running=standing.running,
        interrupted=standing.interrupted,
    )
