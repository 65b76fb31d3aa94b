"""`job submit`: a job's file becomes a gang of the site's scheduler, and Kubernetes' own objects go as they are."""

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
from pai_install.documents.problem import text_lines
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.kubernetes import Native, NativeJob
from pai_install.jobs.model import Job
from pai_install.jobs.place import JobOwner, JobPlace, place, seat
from pai_install.jobs.read import JobReading, read_job
from pai_install.jobs.state import JobState
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, text
from pai_install.registry.pull_secrets import NAME as PULL_SECRET
from pai_install.report.jobs import job_data, job_text, jobs_data, jobs_text
from pai_install.run.environment import Environment
from pai_install.schedulers.admission import refuse
from pai_install.schedulers.defaulting import contradictions, native_objects
from pai_install.schedulers.job_check import check_job
from pai_install.schedulers.jobs import objects_of
from pai_install.scheduling.job_kinds import JobKind, kind_of
from pai_install.scheduling.job_queue import queue_of
from pai_install.scheduling.model import PRIORITIES, Priority
from pai_install.storage.compile import current_grants
from pai_install.system.words import plural
from pai_install.users.directory import owner_of


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

    Kubernetes' own objects (Job, JobSet, Volcano's Job, TFJob, PyTorchJob, Pod, and ConfigMaps, Secrets and
    Services beside them) go as they are: they get the group's namespace, the virtual cluster, the priority and whose
    they are; what in the file contradicts that is an error, and so is what the group may not have.

    It waits for its quota and starts whole, or waits on; the scheduler `default` starts pods one by one. With --watch
    the exit code is 6 when the job fails; Ctrl-C leaves it running.
    """
    with jobs_of(site_dir, environment) as jobs:
        work = _work(file, jobs, wish)
        create(jobs.client, work)
        told = say if output_format == "text" else _quiet
        for own in work.jobs:
            told(f"{own.name} is submitted to {own.place.cluster.name} with priority {own.place.priority}")
        if watched:
            return _watched(jobs, work, output_format)
        found = [_look(jobs, own) for own in work.jobs]
    _tell([one for one in found if one is not None], output_format)
    return ExitCode.OK


@dataclass(frozen=True, slots=True)
class Submitted:
    """A job as an object, and where it goes. name: as its file has it."""

    name: str
    place: JobPlace
    item: JsonObject

    @property
    def kind(self) -> JobKind:
        """The object's."""
        kind = kind_of(self.item)
        assert kind is not None  # noqa: S101 - only jobs are made here
        return kind

    @property
    def label(self) -> str:
        """Its name in Kubernetes."""
        return text(child(self.item, "metadata").get("name"))


@dataclass(frozen=True, slots=True)
class Submission:
    """What a file is in Kubernetes. beside: what goes with the jobs, and ends with the last of them."""

    jobs: tuple[Submitted, ...]
    beside: tuple[dict[str, Any], ...]


def _work(file: Path, jobs: JobsOfSite, wish: SubmitWish) -> Submission:
    """What a file is here. Raises PaiError for what is wrong with it."""
    known_group(jobs.site, wish.group)
    reading = read_job(file)
    if isinstance(reading.job, Job):
        asked = wish.cluster or reading.job.virtual_cluster, wish.priority or reading.job.priority
        job = replace(reading.job, virtual_cluster=asked[0], priority=asked[1])
        reading = replace(reading, job=job)
    reading = check_job(reading, jobs.site, wish.group)
    _require(reading)
    if isinstance(reading.job, Native):
        work = _native(reading, reading.job, jobs, wish)
    else:
        assert reading.job is not None  # noqa: S101 - _require saw to it
        work = _compiled(reading.job, jobs, wish)
    for line in text_lines(reading.problems):
        say(line)
    return work


def _require(reading: JobReading) -> None:
    """Raises PaiError for what is wrong with a file."""
    errors = [problem for problem in reading.problems if problem.is_error]
    if errors or reading.job is None:
        message = f"{reading.file} has {plural(len(errors), 'error')}"
        raise PaiError(
            message, code="job-file-invalid", details="\n".join(text_lines(errors)), exit_code=ExitCode.SITE_INVALID
        )


def _compiled(job: Job, jobs: JobsOfSite, wish: SubmitWish) -> Submission:
    placed = place(job, jobs.scheduling, _owner(jobs, wish), current_grants(jobs.site), (wish.cluster, wish.priority))
    own, *rest = objects_of(job, placed)
    return Submission((Submitted(job.name, placed, own),), tuple(rest))


def _native(reading: JobReading, native: Native, jobs: JobsOfSite, wish: SubmitWish) -> Submission:
    """The objects of the file with what is put into them. Raises PaiError for what contradicts that."""
    places = {job.name: _seated(job, jobs, wish) for job in native.jobs}
    before = {id(document): len(document.problems) for document in native.documents}
    contradictions(native, places)
    refuse(native, places, [PULL_SECRET])
    found = [one for document in native.documents for one in document.problems[before[id(document)] :]]
    _require(reading.with_problems(tuple(found)))
    own, beside = native_objects(native, places)
    made = (Submitted(job.name, places[job.name], item) for job, item in zip(native.jobs, own, strict=True))
    return Submission(tuple(made), beside)


def _seated(job: NativeJob, jobs: JobsOfSite, wish: SubmitWish) -> JobPlace:
    """Where the object goes: as it says itself, else as the command line does."""
    said = queue_of(job.content, job.kind)
    priority = next((name for name in PRIORITIES if name == said.priority), None)
    return seat(jobs.scheduling, _owner(jobs, wish), wish.cluster or said.cluster or None, wish.priority or priority)


def _owner(jobs: JobsOfSite, wish: SubmitWish) -> JobOwner:
    group = known_group(jobs.site, wish.group)
    return JobOwner(owner_of(wish.user) or getpass.getuser(), group.name, group.namespace)


def _quiet(line: str) -> None:
    del line


def create(client: ClusterClient, work: Submission) -> None:
    """Makes the jobs, then what goes with them and ends with them; all or nothing. Raises PaiError."""
    made: list[JsonObject] = []
    try:
        for own in work.jobs:
            made += _created(client, own)
        if work.beside:
            client.create([_owned(one, made) for one in work.beside])
    except BaseException:
        for own in work.jobs[: len(made)]:
            client.delete([Ref(own.kind.asked, own.label, own.place.owner.namespace)])
        raise


def _created(client: ClusterClient, own: Submitted) -> Sequence[JsonObject]:
    try:
        return client.create([own.item])
    except ApiError as error:
        raise _explained(error, own) from error


def _owned(item: dict[str, Any], jobs: Sequence[JsonObject]) -> dict[str, Any]:
    """The object as one that goes with jobs."""
    owners = [
        {
            "apiVersion": job["apiVersion"],
            "kind": job["kind"],
            "name": child(job, "metadata")["name"],
            "uid": text(child(job, "metadata").get("uid")),
        }
        for job in jobs
    ]
    return {**item, "metadata": {**item["metadata"], "ownerReferences": owners}}


def _explained(error: ApiError, own: Submitted) -> PaiError:
    """What the refusal means here."""
    space = own.place.owner.namespace
    if error.reason == "AlreadyExists":
        message = f"there is a job {own.name} already, {own.label} in the namespace {space}"
        remedy = "choose another name, or remove it: pai-install job stop"
        return PaiError(message, code="job-exists", remedy=remedy, exit_code=ExitCode.STEP_FAILED)
    if error.reason == "NotFound":
        return PaiError(
            f"the namespace {space} is not there yet",
            code="namespace-missing",
            remedy="pai-install apply",
            details=error.details,
        )
    if error.reason == "NoSuchKind":
        message = f"this cluster knows no {own.kind.name}s, which this job is made of"
        return PaiError(message, code="job-kind-missing", remedy="pai-install apply", details=error.details)
    return error


def _look(jobs: JobsOfSite, own: Submitted) -> JobState | None:
    """How it stands; None where it is gone."""
    owner = own.place.owner
    found = jobs.all(owner.namespace, owner.user)
    return next((one for one in found if (one.kind, one.label) == (own.kind, own.label)), None)


def _watched(jobs: JobsOfSite, work: Submission, output_format: str) -> int:
    """Watches one after the other, as the file has them; the exit code is that of the worst."""
    told = say if output_format == "text" else _quiet
    ended: list[JobState | None] = []
    for own in work.jobs:
        try:
            ended.append(watch(functools.partial(_look, jobs, own), told))
        except KeyboardInterrupt:
            say(f"\n{own.name} runs on: pai-install job show {own.name} --group {own.place.owner.group}")
            return ExitCode.INTERRUPTED
        if ended[-1] is None:
            say(f"{own.name} was stopped by someone")
    if output_format == "json":
        _tell([one for one in ended if one is not None], output_format)
    return max(map(exit_code_of, ended))


def _tell(found: Sequence[JobState], output_format: str) -> None:
    """One job by itself, several as a list."""
    if len(found) == 1:
        tell_result(output_format, job_data(found[0]), job_text(found[0]))
    elif found:
        tell_result(output_format, jobs_data(found), jobs_text(found))
