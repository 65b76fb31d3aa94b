"""The step that ends the jobs of the scheduler that a cluster has, before another one is installed. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pai_install.errors import ExitCode, PaiError
from pai_install.plan.model import HostStep, LocalWork, Step
from pai_install.schedulers.job_inventory import BlockingJob, busy_jobs, listed
from pai_install.scheduling.amounts import devices_of
from pai_install.scheduling.model import Backend
from pai_install.scheduling.read import scheduling_of
from pai_install.site.model import Site
from pai_install.system.words import plural

STEP = "scheduler-switch"


def switch_step(site: Site, before: Backend, to: Backend | None, *, edits: bool = False, force: bool = False) -> Step:
    """Returns the step. to: None for none. edits: it also writes the new scheduler to the site's file."""
    scheduling = scheduling_of(site)
    arguments = {
        "before": before,
        "to": to,
        "force": force,
        "edits": edits,
        "devices": list(devices_of(scheduling)) if scheduling is not None else [],
    }
    reasons = (*_goes(before, to), *(("services-configuration.yaml is to say so",) if edits else ()))
    effects = ("ends every job that runs or waits",) if force and before != to else ()
    title = f"Give up {before} for {to or 'no scheduler'}" if before != to else f"Choose {to}"
    leader = site.control_planes[0].hostname
    return Step(STEP, title, (HostStep(leader, reasons, effects),), LocalWork(STEP, arguments))


def _goes(before: Backend, to: Backend | None) -> tuple[str, ...]:
    if before == to:
        return ()
    return (f"the cluster has {before}", f"what is left of jobs of {before} that ended goes with it")


def require_ended(site: Site, before: Backend, to: Backend | None, jobs: Sequence[BlockingJob]) -> None:
    """Raises PaiError for jobs of the old scheduler that run or wait. Finished jobs do not count."""
    busy = busy_jobs(jobs)
    if not busy:
        return
    switch = f"pai-install scheduler switch --site {site.directory} --to {to} --force"
    stop = f"run {switch}, which stops them" if to else "stop them: pai-install job stop"
    raise PaiError(
        f"cannot replace the scheduler {before} by {to or 'none'}: {plural(len(busy), 'job')} of {before} "
        f"{'has' if len(busy) == 1 else 'have'} not ended",
        code="scheduler-jobs-running",
        details=listed(busy),
        remedy=f"no changes made. Wait for them, or {stop}",
        exit_code=ExitCode.PREFLIGHT_FAILED,
    )
