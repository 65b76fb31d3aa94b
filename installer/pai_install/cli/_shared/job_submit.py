"""`job submit`: a job's file becomes a gang of the site's scheduler."""

from __future__ import annotations

import functools
import getpass
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.job_cluster import JobsOfSite, jobs_of, known_group
from pai_install.cli._shared.job_watch import exit_code_of, watch
from pai_install.cli._shared.tell import say, tell_result
from pai_install.cli.options import format_option, site_option
from pai_install.cluster.client import ApiError, ClusterClient
from pai_install.cluster.model import Ref
from pai_install.cluster.objects import JsonObject, child, text
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.check import check_job
from pai_install.jobs.compile.objects import objects_of
from pai_install.jobs.model import Job
from pai_install.jobs.names import kubernetes_name
from pai_install.jobs.place import JobOwner, JobPlace, place
from pai_install.jobs.read import read_job
from pai_install.jobs.state import JobState, job_kind
from pai_install.report.jobs import job_data, job_text
from pai_install.run.environment import Environment
from pai_install.scheduling.model import PRIORITIES, Priority
from pai_install.site.model import Site
from pai_install.site.problem import text_lines
from pai_install.storage.compile import current_grants
from pai_install.system.words import plural


@dataclass(frozen=True, slots=True)
class SubmitWish:
    """What the command line says of a job beside its file. user: empty for who calls."""

    group: str
    user: str
    cluster: str | None
    priority: Priority | None


_OPTIONS = (
    click.option("--group", required=True, metavar="GROUP", help="Whose job it is: it runs in this group's namespace."),
    click.option("--user", default="", metavar="USER", help="Whose job it is; without, the user of this machine."),
    click.option("--vc", "cluster", default=None, metavar="NAME", help="Another virtual cluster than the file's."),
    click.option("--priority", type=click.Choice(list(PRIORITIES)), default=None, help="Another than the file's."),
)


def _wish_options(verb: Callable[..., int]) -> Callable[..., int]:
    """Adds the options of whose and where a job is, and gives the verb their values as one `wish`."""

    @functools.wraps(verb)  # with the options that the verb has of its own
    def gathered(*, group: str, user: str, cluster: str | None, priority: Priority | None, **words: object) -> int:
        return verb(wish=SubmitWish(group, user, cluster, priority), **words)

    command: Callable[..., int] = gathered
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@site_option
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_wish_options
@click.option("--watch", "watched", is_flag=True, help="Stay until it has ended, and tell how it stands.")
@format_option
@pass_environment
def submit(
    *, site_dir: Path, file: Path, wish: SubmitWish, watched: bool, output_format: str, environment: Environment
) -> int:
    """Submit a job: a file of OpenPAI, v1 JSON or v2 YAML, becomes a gang of the site's scheduler.

    It waits for its quota and starts whole, or waits on; the scheduler `default` starts pods one by one. With --watch
    the exit code is 6 when the job fails; Ctrl-C leaves it running.
    """
    with jobs_of(site_dir, environment) as jobs:
        job = _read(file, jobs.site, wish)
        placed = placed_at(job, jobs, wish)
        create(jobs, objects_of(job, placed), job)
        told = say if output_format == "text" else _quiet
        told(f"{job.name} is submitted to {placed.cluster.name} with priority {placed.priority}")
        if watched:
            return _watched(jobs, job, placed, output_format)
        found = jobs.one(job.name, wish.group)
    tell_result(output_format, job_data(found), job_text(found))
    return ExitCode.OK


def _read(file: Path, site: Site, wish: SubmitWish) -> Job:
    """The job of a file, as the command line changes it. Raises PaiError for what is wrong with it here or anywhere."""
    known_group(site, wish.group)
    reading = read_job(file)
    if isinstance(reading.job, Job):
        asked = wish.cluster or reading.job.virtual_cluster, wish.priority or reading.job.priority
        job = replace(reading.job, virtual_cluster=asked[0], priority=asked[1])
        reading = check_job(replace(reading, job=job), site, wish.group)
    errors = [problem for problem in reading.problems if problem.is_error]
    if errors or reading.job is None:
        message = f"{file} has {plural(len(errors), 'error')}"
        raise PaiError(message, details="\n".join(text_lines(errors)), exit_code=ExitCode.SITE_INVALID)
    if not isinstance(reading.job, Job):
        message = f"{file} has Kubernetes' own objects, which are not submitted this way"
        remedy = "give them the label of the virtual cluster's queue, and apply them with pai-install kubectl"
        raise PaiError(message, remedy=remedy, exit_code=ExitCode.USAGE)
    for line in text_lines(reading.problems):
        say(line)
    return reading.job


def _quiet(line: str) -> None:
    del line


def placed_at(job: Job, jobs: JobsOfSite, wish: SubmitWish) -> JobPlace:
    """Where it goes. Raises PaiError for what may not be there."""
    group = known_group(jobs.site, wish.group)
    owner = JobOwner(wish.user or getpass.getuser(), group.name, group.namespace)
    return place(job, jobs.scheduling, owner, current_grants(jobs.site), (wish.cluster, wish.priority))


def create(jobs: JobsOfSite, objects: Sequence[dict[str, Any]], job: Job) -> None:
    """Makes the job, then what goes with it and ends with it; all or nothing. Raises PaiError."""
    own, *rest = objects
    try:
        (made,) = jobs.client.create([own])
    except ApiError as error:
        raise _explained(error, own, job) from error
    if not rest:
        return
    try:
        jobs.client.create([_owned(one, own, made) for one in rest])
    except BaseException:
        _take_back(jobs.client, own, job_kind(jobs.scheduling.backend))
        raise


def _take_back(client: ClusterClient, own: JsonObject, kind: str) -> None:
    metadata = child(own, "metadata")
    client.delete([Ref(kind, text(metadata.get("name")), text(metadata.get("namespace")))])


def _owned(item: dict[str, Any], own: JsonObject, made: JsonObject) -> dict[str, Any]:
    """The object as one that goes with the job."""
    owner = {
        "apiVersion": own["apiVersion"],
        "kind": own["kind"],
        "name": child(own, "metadata")["name"],
        "uid": text(child(made, "metadata").get("uid")),
    }
    return {**item, "metadata": {**item["metadata"], "ownerReferences": [owner]}}


def _explained(error: ApiError, own: JsonObject, job: Job) -> PaiError:
    """What the refusal means here."""
    space = text(child(own, "metadata").get("namespace"))
    if error.reason == "AlreadyExists":
        message = f"there is a job {job.name} already, {kubernetes_name(job.name)} in the namespace {space}"
        remedy = "choose another name, or remove it: pai-install job stop"
        return PaiError(message, remedy=remedy, exit_code=ExitCode.STEP_FAILED)
    if error.reason == "NotFound":
        return PaiError(f"the namespace {space} is not there yet", remedy="pai-install apply", details=error.details)
    if error.reason == "NoSuchKind":
        message = f"this cluster knows no {own['kind']}s, which jobs are made of here"
        remedy = "pai-install apply; with the schedulers default and hived JobSet has to be installed beside them"
        return PaiError(message, remedy=remedy, details=error.details)
    return error


def _watched(jobs: JobsOfSite, job: Job, placed: JobPlace, output_format: str) -> int:
    told = say if output_format == "text" else _quiet
    label = kubernetes_name(job.name)
    last: JobState | None = None

    def look() -> JobState | None:
        nonlocal last
        last = next(iter(jobs.all(placed.owner.namespace, label)), None)
        return last

    try:
        ended = watch(look, told)
    except KeyboardInterrupt:
        say(f"\n{job.name} runs on: pai-install job show {job.name} --group {placed.owner.group}")
        return ExitCode.INTERRUPTED
    if ended is None:
        say(f"{job.name} was stopped by someone")
    elif output_format == "json":
        tell_result(output_format, job_data(ended), "")
    return exit_code_of(ended)
