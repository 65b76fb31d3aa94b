"""Use cases of the scheduler: switch to another one, and test its guarantees."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from pai_install.app.context import App, RunOptions
from pai_install.app.frontend import FileDifference
from pai_install.app.last_applied import last_applied
from pai_install.checks.finding import Finding
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.scheduler_switch import SchedulerSwitch
from pai_install.operations.scheduler_test import SchedulerTest
from pai_install.profile.project import profile_of
from pai_install.run.scheduler_switch import jobs_in, scheduler_text, still_busy
from pai_install.run.services_file import services_file
from pai_install.schedulers.compile import remarks
from pai_install.schedulers.job_inventory import busy_jobs
from pai_install.scheduling.amounts import devices_of
from pai_install.scheduling.model import Backend, Scheduling
from pai_install.site.load import SERVICES, load_site
from pai_install.site.model import Site
from pai_install.site.schedulers import scheduler_of
from pai_install.site_edit.shown import difference


class SwitchScheduler(BaseModel):
    """Replaces the scheduler."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    to: Backend = Field(description="The new scheduler.")
    force: bool = Field(default=False, description="Stop running and waiting jobs. Their unsaved work is lost.")


def switch_scheduler(app: App, request: SwitchScheduler, options: RunOptions) -> int:
    """Edits the site's file, removes the old scheduler, and applies the site. Returns the exit code.

    Raises PaiError while jobs of the old scheduler run or wait, unless request.force or options.check.
    """
    if not options.check:
        app.frontend.require_answers()
    _require_sections(app, request.to)
    with app.hold("scheduler switch"):
        path = services_file(app.site_dir)
        text = path.read_bytes().decode() if path.exists() else ""
        after = scheduler_text(app.site_dir, text, request.to)
        site = load_site(app.site_dir, services=after).site
        before, scheduling = current_scheduler(app), profile_of(site).scheduling
        if before != request.to:
            _announce_jobs(app, before, scheduling, ending=request.force, allowed=request.force or options.check)
            for line in remarks(scheduling) if scheduling is not None else ():
                app.notify(f"{request.to}: {line}")
        if after != text:
            services = (app.site.services, site.services)
            app.frontend.notify(FileDifference(difference(str(app.site_dir / SERVICES), text, after, services)))
        operation = SchedulerSwitch(to=request.to, before=before, edits=after != text, force=request.force)
        return app.exit_code(operation, options.model_copy(update={"services": after}))


def _require_sections(app: App, to: Backend) -> None:
    """Raises PaiError for virtual clusters in HiveD's own block: no other scheduler reads them."""
    site: Site = app.site
    if site.services.scheduler is None and scheduler_of(site) == "hived":
        first = f"pai-install vc migrate --site {app.site_dir} --to {to if to != 'hived' else 'kueue'} --write"
        raise PaiError(
            "cannot switch the scheduler: only HiveD reads the block with the virtual clusters of this site",
            code="virtual-clusters-in-hived-block",
            remedy=f"run {first}, then repeat the command" if to != "hived" else "keep HiveD: this site has it already",
            exit_code=ExitCode.USAGE,
        )


def current_scheduler(app: App) -> Backend:
    """Returns the last applied scheduler of the cluster, else the site's, else `default`."""
    applied = last_applied(app.cluster)
    return applied.backend if applied is not None else scheduler_of(app.site) or "default"


def _announce_jobs(app: App, before: Backend, scheduling: Scheduling | None, *, ending: bool, allowed: bool) -> None:
    """Lists the jobs of the old scheduler. Raises PaiError for running and waiting ones unless allowed."""
    jobs = jobs_in(app.cluster, before, devices_of(scheduling) if scheduling is not None else ())
    busy = busy_jobs(jobs)
    if busy and not allowed:
        raise still_busy(busy, before)
    for job in jobs:
        stopped = "it is stopped" if ending else "the switch is refused without --force"
        app.notify(f"{job}: {'its objects are deleted' if job.ended else stopped}")


def run_self_test(app: App, request: SchedulerTest) -> tuple[tuple[Finding, ...], int]:
    """The findings of the self-test, and the exit code."""
    outcome = app.run(request, agreed=True)
    assert outcome is not None  # noqa: S101 - no one is asked
    return outcome.findings, outcome.exit_code
