"""Use cases of a single run that need more than its operation: plan, status, certificates, restore."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pai_install.app.alerts import firing_alerts
from pai_install.app.console import console_access
from pai_install.app.context import App, RunOptions
from pai_install.app.frontend import PreflightReady
from pai_install.app.running import announce
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.health.cluster.conditions import versions
from pai_install.operations.install import Install, site_findings
from pai_install.operations.observe import Look
from pai_install.operations.restore import Restore
from pai_install.operations.verify import certificates_of
from pai_install.plan.model import Plan
from pai_install.report.certificates import CertificateEntry, CertificatesReport
from pai_install.report.diffs import FileChange
from pai_install.report.model import Outcome
from pai_install.report.site_status import LastRun, SiteStatus, last_run_of
from pai_install.run.backup import bring_back, read_backup, take_machine
from pai_install.run.journal import interrupted_run
from pai_install.run.lock import holder
from pai_install.run.pipeline import admit, prepare, preview
from pai_install.run.verification_state import read_proof
from pai_install.system.files import read_bounded
from pai_install.system.parameters import Parameter

_LARGEST_REPORT = 256 << 20


@dataclass(frozen=True, slots=True)
class PlanReport:
    """A plan. changes: None where check mode was left out. refused: machine -> reason of preflight."""

    plan: Plan
    changes: tuple[FileChange, ...] | None
    refused: dict[str, str]
    exit_code: int


def plan_site(app: App, operation: Install, *, diff: bool, forced_checks: tuple[str, ...] = ()) -> PlanReport:
    """The plan of `apply`, with file changes if `diff`. Changes nothing."""
    options = RunOptions(forced_checks=forced_checks)
    with app.session(operation, options, "plan") as session:
        announce(app, session)
        prepared = admit(session, prepare(session))
        if prepared.preflight is not None:
            app.frontend.notify(PreflightReady(prepared.preflight))
        changes: tuple[FileChange, ...] | None = () if diff else None
        exit_code = prepared.exit_code
        if diff and not prepared.plan.empty:
            outcome, changes = preview(session, prepared)
            exit_code = outcome.exit_code or prepared.exit_code
        return PlanReport(prepared.plan, changes, prepared.refused, exit_code)


def status_of(app: App, *, offline: bool) -> SiteStatus:
    """The status of the site. Asks the machines unless `offline` or while another run is at work."""
    site, state = app.site, app.state
    running = holder(state.path)
    last_run = _last_run(app)
    app.announce_rotations()
    interrupted = None if running else interrupted_run(state.journal, app.notify)
    # The file may name machines that the site no longer has.
    present = {machine.hostname for machine in site.present_machines}
    unproven = {host: entry for host, entry in read_proof(state.proof).unproven.items() if host in present}
    known = SiteStatus(
        site,
        last_run=last_run,
        running=str(running or ""),
        interrupted=interrupted.run if interrupted else "",
        continued_by=interrupted.operation if interrupted and interrupted.operation else "apply",
        unproven={host: entry.why for host, entry in unproven.items()},
        proof_failed=any(entry.failed for entry in unproven.values()),
        console=console_access(app),
    )
    if offline or running:
        return known
    # status downloads nothing. Without the components it cannot compare the machines with the site.
    compared = app.environment.stocked(site)
    _, prepared = app.inspect(Install() if compared else Look(), "status")
    return replace(
        known,
        plan=prepared.plan,
        findings=site_findings(site, prepared.observation),
        versions=versions(site, prepared.observation.machines),
        compared=compared,
        look=prepared.exit_code,
        alerts=firing_alerts(app),
    )


def _last_run(app: App) -> LastRun | None:
    for report in app.state.reports():
        try:
            return last_run_of(report.parent.name, json.loads(read_bounded(report, _LARGEST_REPORT)))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            app.notify(f"ignored: {report} is damaged")
    return None


def show_certificates(app: App) -> CertificatesReport:
    """Every certificate of the cluster, the next to expire first."""
    session, prepared = app.inspect(Look(), "certs show")
    rows = certificates_of(session.site, prepared.observation)
    expired = any(row.verdict is Verdict.FAIL for row in rows)
    code: int = prepared.exit_code
    if code == ExitCode.OK and expired:
        code = ExitCode.VERIFICATION_FAILED
    return CertificatesReport(
        certificates=tuple(map(CertificateEntry.model_validate, rows)),
        unreachable=tuple(prepared.plan.unreachable),
        exit_code=code,
    )


class RestoreCluster(BaseModel):
    """Restores the cluster from a backup."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    file: Annotated[Path, Parameter(positional=True, metavar="FILE")]
    only_site: bool = Field(
        default=False, description="Restore only missing files of the site and of its state on this host."
    )


def restore_cluster(app: App, request: RestoreCluster, options: RunOptions) -> int:
    """Missing files of the site, etcd and keys on one control plane, then `apply`. Returns the exit code."""
    manifest = read_backup(request.file)
    if not options.check:
        written, others = bring_back(request.file, manifest, app.site_dir, host_keys=not app.accept_new_host_keys)
        for path in written:
            app.notify(f"{path} comes from the backup")
        for path in others:
            app.notify(f"{path} differs from the backup, and stays")
    if request.only_site:
        return ExitCode.OK
    with app.hold("restore"), tempfile.TemporaryDirectory(prefix="pai-restore-") as folder:  # for its owner alone
        machine = Path(folder) / "machine.tar"
        take_machine(request.file, machine)
        restore = Restore(machine=str(machine), cluster=manifest.cluster, created=manifest.created)
        outcome = app.run(restore, options)
        if outcome is None:
            return ExitCode.PREFLIGHT_FAILED
        if options.check or outcome.exit_code is not ExitCode.OK:
            return outcome.exit_code
        # A saved plan of the restoration is not a plan of the installation that follows.
        after: Outcome | None = app.run(Install(), options.model_copy(update={"plan_file": None}), agreed=True)
        return after.exit_code if after is not None else ExitCode.PREFLIGHT_FAILED
