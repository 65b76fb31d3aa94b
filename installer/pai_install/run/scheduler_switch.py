"""The work of a scheduler switch outside playbooks: end the old scheduler's jobs, write the new one to the site."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pai_install.cluster.client import ApiError, ClusterClient, Select
from pai_install.documents.problem import text_lines
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject
from pai_install.run.actions import LocalWorker
from pai_install.run.services_file import services_file, write_services
from pai_install.schedulers.job_inventory import BlockingJob, busy_jobs, in_order, listed
from pai_install.schedulers.registry import backend_of
from pai_install.scheduling.model import Backend
from pai_install.site.load import SERVICES, read_site
from pai_install.site_edit.spans import EditError
from pai_install.site_edit.virtual_clusters import kept_by
from pai_install.system.words import plural

# in which jobs that are told to end are gone: pods have half a minute to end, unless they say more
END_S = 180.0
_POLL_S = 1.0

Clock = Callable[[], float]


def scheduler_switch(cluster: ClusterClient, site_dir: Path) -> LocalWorker:
    """The worker."""

    def work(hosts: Sequence[str], arguments: Mapping[str, Any]) -> tuple[()]:
        del hosts
        before: Backend = arguments["before"]
        # The old scheduler must still run, because only its controllers release the jobs.
        if before != arguments["to"]:
            end_jobs(cluster, before, arguments["devices"], force=arguments["force"])
        if arguments["edits"]:
            write_scheduler(site_dir, arguments["to"])
        return ()

    return work


def jobs_in(cluster: ClusterClient, backend: Backend, devices: Collection[str]) -> tuple[BlockingJob, ...]:
    """Returns the scheduler's existing jobs. Raises NoClusterError, and ApiError if the API refuses."""
    keeper = backend_of(backend)
    answers = {kind: _requested(cluster, kind) for kind in keeper.inventory_resources}
    return in_order(keeper.kept_jobs(answers, devices))


def _requested(cluster: ClusterClient, kind: str) -> Sequence[JsonObject]:
    """Returns all objects of a kind, or () if the kind is deleted, as after an interrupted switch."""
    try:
        (found,) = cluster.list(Select((kind,)))
    except ApiError as error:
        if error.reason != "NoSuchKind":
            raise
        return ()
    return found


def end_jobs(
    cluster: ClusterClient,
    backend: Backend,
    devices: Collection[str],
    *,
    force: bool,
    clock: Clock = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Deletes remaining finished jobs while the scheduler can release them, and with force all other jobs.

    Raises PaiError for unfinished jobs without force, and for jobs that are not deleted.
    """
    deadline, reported = clock() + END_S, set[Ref]()
    # A Deployment or CronJob may start jobs meanwhile, so the list is read again.
    while jobs := jobs_in(cluster, backend, devices):
        busy = busy_jobs(jobs)
        if busy and not force:
            raise still_busy(busy, backend)
        if clock() > deadline:
            raise _stay(jobs)
        cluster.delete([ref for job in jobs if (ref := ref_of(job)) not in reported])
        reported.update(map(ref_of, jobs))
        pause(_POLL_S)


def ref_of(job: BlockingJob) -> Ref:
    """Returns the reference of its object."""
    kind = job.kind.lower()
    return Ref(f"{kind}.{job.group}" if job.group else kind, job.name, job.namespace)


def still_busy(jobs: Sequence[BlockingJob], backend: Backend) -> PaiError:
    """The refusal to switch under jobs that have not ended."""
    return PaiError(
        f"cannot switch the scheduler: {plural(len(jobs), 'job')} of {backend} not ended",
        code="scheduler-jobs-running",
        details=listed(jobs),
        remedy="wait for them, or stop them with --force, which loses unsaved data",
        exit_code=ExitCode.PREFLIGHT_FAILED,
    )


def _stay(jobs: Sequence[BlockingJob]) -> PaiError:
    return PaiError(
        f"cannot stop {plural(len(jobs), 'job')} within {END_S:g} s",
        code="scheduler-jobs-not-ended",
        details=listed(jobs),
        remedy="delete the controller that re-creates them (Deployment, CronJob), then repeat the command",
    )


def write_scheduler(site_dir: Path, to: Backend) -> None:
    """Writes the scheduler to the site's file and keeps the rest. Raises PaiError if the file cannot be edited."""
    path = services_file(site_dir)
    before = path.read_bytes().decode() if path.exists() else ""
    after = scheduler_text(site_dir, before, to)
    if after != before:
        write_services(path, after)


def scheduler_text(site_dir: Path, text: str, to: Backend) -> str:
    """The text of services-configuration.yaml with another scheduler.

    Raises PaiError where no command can edit it, or the site would be invalid.
    """
    try:
        made = kept_by(text, to)
    except EditError as error:
        place = f"{site_dir / SERVICES}:{error.line}"
        raise PaiError(
            f"cannot edit {place}: {error.message}",
            code="site-file-not-editable",
            remedy=f"write scheduler: {{type: {to}}} there",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        ) from error
    problems = [problem for problem in read_site(site_dir, services=made).problems if problem.is_error]
    if problems:
        raise PaiError(
            f"cannot switch the site to {to}: it would be invalid. No changes made",
            code="edited-site-invalid",
            details="\n".join(text_lines(problems)),
            remedy="edit the file by hand, then repeat the command. Line numbers refer to the edited file",
            exit_code=ExitCode.SITE_INVALID,
        )
    return made
