"""The use case of `job submit`: a job's file becomes a gang of the site's scheduler, or Kubernetes' own objects."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from secrets import choice
from typing import TYPE_CHECKING

from pai_install.app.cluster_context import ClusterContext
from pai_install.app.cut_submission import complete_jobs, create_companion, create_job, owned
from pai_install.app.frontend import JobChanged
from pai_install.app.job_manifest import JobManifest, JobSubmission
from pai_install.app.jobs import open_job_directory
from pai_install.app.requested_job import JobOptions, SubmitJob, requested_reading, with_code
from pai_install.cluster.client import ApiError, ClusterClient, Impersonation
from pai_install.cluster.retries import SOON_S, answered
from pai_install.documents.problem import Problem, dotted, printable, text_lines
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.directory import JobDirectory
from pai_install.jobs.dry_run import without_secrets
from pai_install.jobs.kubernetes import KubernetesFile, KubernetesJob
from pai_install.jobs.model import Job
from pai_install.jobs.place import JobOwner, JobPlace, place, seat
from pai_install.jobs.pod_status import ENDED
from pai_install.jobs.read import JobReading
from pai_install.jobs.rejection import rejected_field
from pai_install.jobs.state import JobState
from pai_install.kube.objects import JsonObject
from pai_install.profile.model import ClusterProfile
from pai_install.report.jobs import job_text
from pai_install.schedulers.admission import reject
from pai_install.schedulers.defaulting import contradictions, native_objects
from pai_install.schedulers.job_check import check_job
from pai_install.schedulers.jobs import objects_of
from pai_install.scheduling.job_queue import queue_of
from pai_install.scheduling.model import PRIORITIES
from pai_install.system.words import plural
from pai_install.users.directory import owner_of

if TYPE_CHECKING:  # the console has no AppContext
    from pai_install.app.base import AppContext

_POLL_S = 2.0
# no vowels: as in Kubernetes, no name contains a word by chance
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
# the words of the API server for a kind that a new quota does not count yet
_UNCOUNTED = "status unknown for quota"
_COUNT_TRIES, _COUNT_POLL_S = 40, 3.0
# RBAC's words, and those of admission policies
_MISSING_RIGHT = " cannot create resource "
_DENIED = " denied request: "


class RejectedJob(PaiError):  # noqa: N818 - reads as what it is
    """The cluster rejects a job. problem: the cause, at the field of the file that it names."""

    def __init__(self, message: str, problem: Problem, details: str) -> None:
        where = str(problem) if problem.path else ""
        super().__init__(
            message,
            code="job-not-permitted",
            remedy="correct the file. docs/users.md lists the permissions of members",
            details="\n".join(filter(None, (where, details))),
            exit_code=ExitCode.SITE_INVALID,
        )
        self.problem = problem


@dataclass(frozen=True, slots=True)
class SubmittedJobs:
    """The state of submitted jobs, without deleted ones."""

    jobs: tuple[JobState, ...]
    exit_code: int = ExitCode.OK


def submit_job(app: AppContext, request: SubmitJob) -> SubmittedJobs:
    """Creates the jobs of a file, all or none. With request.watch it returns after their end.

    Raises PaiError for an invalid file, and ApiError where the API server rejects an object.
    """
    reading = requested_reading(app, request)
    submission = _with_code(app, request, reading) if request.code else submit_reading(app, request, reading)
    jobs = open_job_directory(app)
    if request.watch:
        return _watched(app, jobs, submission)
    states = [_state(jobs, one) for one in submission.jobs]
    return SubmittedJobs(tuple(one for one in states if one is not None))


def _with_code(app: AppContext, request: SubmitJob, reading: JobReading) -> JobSubmission:
    """Creates the jobs of a reading with the code in a folder. A large archive is on its storage before."""
    from pai_install.app.code_folder import packed_folder  # noqa: PLC0415 - for code alone
    from pai_install.app.code_storage import CodeExec, storage_for_code, store_code  # noqa: PLC0415

    assert request.code is not None  # noqa: S101 - the caller asked
    with packed_folder(request.code, app.profile.code.max_mib) as packed:
        small = packed.small
        if small is not None:
            return submit_reading(app, request, with_code(reading, small))
        app.profile.require_group(request.group)
        code = packed.on(storage_for_code(app.profile, request.group))

        def store(submission: JobSubmission) -> None:
            place = submission.jobs[0].place
            jobs = open_job_directory(app).list(place.owner.namespace)
            store_code(app, packed, code, place, CodeExec(app), jobs)

        return submit_reading(app, request, with_code(reading, code), store)


def submit_reading(
    app: ClusterContext,
    options: JobOptions,
    reading: JobReading,
    before: Callable[[JobSubmission], None] = lambda _submission: None,
) -> JobSubmission:
    """Creates the jobs of a reading, all or none. before: works between the check and the creation. Raises PaiError."""
    options = options.model_copy(update={"user": options.user or app.user})
    submission, warnings = compile_unchecked(app.profile, options, reading)
    for line in warnings:
        app.notify(line)
    identity = app.submitter(options.user)
    try:
        permit = functools.partial(require_permitted, app.cluster, submission, identity)
        _once_counted(lambda: answered(permit, SOON_S), app.notify)
        before(submission)
        _once_counted(lambda: create_jobs(app.cluster, submission), app.notify)
    except PaiError as error:
        if error.code != "job-exists" or not complete_jobs(app.cluster, submission):
            raise
    for one in submission.jobs:
        app.notify(f"{one.name} is submitted to {one.place.cluster.name} with priority {one.place.priority}")
    return submission


def _once_counted(request: Callable[[], None], notify: Callable[[str], None]) -> None:
    """Repeats a request that the API server cannot decide yet: a quota counts a new kind about a minute later."""
    for number in range(_COUNT_TRIES):
        try:
            return request()
        except PaiError as error:
            if number + 1 == _COUNT_TRIES or _UNCOUNTED not in f"{error.message} {error.details}":
                raise
        if not number:
            notify("waiting for the cluster to count the group's quota")
        time.sleep(_COUNT_POLL_S)
    return None


def compile_unchecked(
    profile: ClusterProfile, request: JobOptions, reading: JobReading
) -> tuple[JobSubmission, tuple[str, ...]]:
    """The objects of a job file that was read, and its warnings. Raises PaiError for an invalid file."""
    profile.require_group(request.group)
    reading = reading.in_queue(request.cluster, request.priority)
    if isinstance(reading.job, KubernetesFile):
        reading = replace(reading, job=replace(reading.job, jobs=tuple(map(_named, reading.job.jobs))))
    reading = check_job(reading, profile, request.group)
    return compile_reading(profile, request, reading), tuple(text_lines(reading.problems))


def compile_reading(profile: ClusterProfile, request: JobOptions, reading: JobReading) -> JobSubmission:
    """The objects of a checked file. Raises PaiError for an invalid file."""
    _require_valid(reading)
    compiled = (_native if isinstance(reading.job, KubernetesFile) else _openpai)(profile, request, reading)
    return compiled.with_file(reading.text)


def _named(job: KubernetesJob) -> KubernetesJob:
    """The job with a whole name, as `kubectl create` gives it."""
    return job.with_suffix("".join(choice(_SUFFIX) for _ in range(5))) if job.generated else job


def _require_valid(reading: JobReading) -> None:
    """Raises PaiError for the errors of a file."""
    errors = [problem for problem in reading.problems if problem.is_error]
    if errors or reading.job is None:
        raise PaiError(
            f"cannot submit {reading.file}: it has {plural(len(errors), 'error')}",
            code="job-file-invalid",
            details="\n".join(text_lines(errors)),
            exit_code=ExitCode.SITE_INVALID,
        )


def _openpai(profile: ClusterProfile, request: JobOptions, reading: JobReading) -> JobSubmission:
    job = reading.job
    assert isinstance(job, Job)  # noqa: S101 - the other kind goes another way
    grants = [grant for grant in profile.grants if grant.current]
    queue = request.cluster, request.priority
    placed = place(job, profile.require_scheduling(), _owner(profile, request), grants, queue)
    own, *rest = objects_of(job, placed)
    document = reading.places["virtual-cluster"].document
    return JobSubmission((JobManifest(job.name, placed, own, document),), tuple(rest))


def _native(profile: ClusterProfile, request: JobOptions, reading: JobReading) -> JobSubmission:
    """Returns the objects of the file with defaults. Raises PaiError for values that contradict the defaults."""
    native = reading.job
    assert isinstance(native, KubernetesFile)  # noqa: S101 - the other kind goes another way
    places = {job.name: _place(profile, request, job) for job in native.jobs}
    before = {id(document): len(document.problems) for document in native.documents}
    contradictions(native, places, queues=request.cluster is None)
    reject(native, places)
    found = [one for document in native.documents for one in document.problems[before[id(document)] :]]
    _require_valid(reading.with_problems(tuple(found)))
    own, companions = native_objects(native, places)
    pairs = zip(native.jobs, own, strict=True)
    jobs = (JobManifest(job.name, places[job.name], item, job.document) for job, item in pairs)
    return JobSubmission(tuple(jobs), companions)


def _place(profile: ClusterProfile, request: JobOptions, job: KubernetesJob) -> JobPlace:
    """The queue of the object: by the request, else by its labels."""
    named = queue_of(job.content, job.kind)
    priority = next((name for name in PRIORITIES if name == named.priority), None)
    cluster = request.cluster or named.cluster or None
    return seat(profile.require_scheduling(), _owner(profile, request), cluster, request.priority or priority)


def _owner(profile: ClusterProfile, request: JobOptions) -> JobOwner:
    group = profile.require_group(request.group)
    return JobOwner(owner_of(request.user), group.name, group.namespace)


def require_permitted(client: ClusterClient, submission: JobSubmission, identity: Impersonation | None) -> None:
    """Asks the API server, in the name of the owner, whether its policies permit the jobs. Raises PaiError.

    A companion must not exist yet: else a pod could start with the Secret of another user.
    """
    secrets = {one["metadata"]["name"] for one in submission.companions if one["kind"] == "Secret"}
    for job in submission.jobs:
        with _explaining(job):
            client.dry_run([without_secrets(job.item, secrets)], identity)
    client.dry_run(submission.companions)


def create_jobs(client: ClusterClient, submission: JobSubmission) -> None:
    """Creates the jobs, then their companions, all or none. Raises PaiError."""
    created: list[JsonObject] = []
    try:
        for one in submission.jobs:
            with _explaining(one):
                created.append(create_job(client, one))
        # The companions follow, because they need the uid of the job that owns them.
        for item in submission.companions:
            create_companion(client, owned(item, created))
    except BaseException:
        # After Ctrl-C, too: a job without its Secret would never start.
        for one in submission.jobs[: len(created)]:
            answered(functools.partial(client.delete, [one.ref]), SOON_S)
        raise


@contextmanager
def _explaining(job: JobManifest) -> Iterator[None]:
    """Raises the API server's errors in words of jobs."""
    try:
        yield
    except ApiError as error:
        raise _explained(error, job) from error


def _explained(error: ApiError, job: JobManifest) -> PaiError:
    """The API server's error in words of jobs."""
    namespace = job.place.owner.namespace
    if error.reason == "AlreadyExists":
        return PaiError(
            f"cannot submit {job.name}: the job {job.label} exists in the namespace {namespace}",
            code="job-exists",
            remedy=f"choose another name, or remove the job: pai-install job stop {job.name}",
        )
    if error.reason == "NotFound":
        return PaiError(
            f"cannot submit the job: the namespace {namespace} does not exist",
            code="namespace-missing",
            remedy="run pai-install apply",
            details=error.details,
        )
    if error.reason == "NoSuchKind":
        return PaiError(
            f"cannot submit {job.name}: the cluster has no kind {job.kind.name}",
            code="job-kind-missing",
            remedy="run pai-install apply",
            details=error.details,
        )
    if error.reason == "Forbidden" and _MISSING_RIGHT in error.details:
        return PaiError(
            f"cannot check {job.name} against the policies of {namespace}",
            code="submitter-rights-missing",
            remedy="run pai-install apply",
            details=error.details,
        )
    if error.reason in ("Forbidden", "Invalid"):
        return _rejected(error, job)
    return error


def _rejected(error: ApiError, job: JobManifest) -> RejectedJob:
    cause, document = _cause(error), job.document
    path = rejected_field(document, error.details)
    line, column = document.mark(path)
    problem = Problem(document.file, line, column, dotted(path), "error", "job.rejected", printable(cause))
    return RejectedJob(f"cannot submit {job.name}: the cluster rejects it: {cause}", problem, error.details)


def _cause(error: ApiError) -> str:
    """The words of a policy, else the first line of the API server's message."""
    _, _, words = error.details.partition(_DENIED)
    return (words or error.details).strip().partition("\n")[0]


def _state(jobs: JobDirectory, job: JobManifest) -> JobState | None:
    """Returns the job's state, or None once it is deleted."""
    owner = job.place.owner
    found = jobs.list(owner.namespace, owner.user)
    return next((one for one in found if (one.kind, one.label) == (job.kind, job.label)), None)


def _watched(app: ClusterContext, jobs: JobDirectory, submission: JobSubmission) -> SubmittedJobs:
    """Watches one job after the other. The exit code is the worst."""
    ended: list[JobState | None] = []
    for one in submission.jobs:
        try:
            ended.append(watch_job(app, functools.partial(_state, jobs, one)))
        except KeyboardInterrupt:
            app.notify(f"\n{one.name} runs on: pai-install job show {one.name} --group {one.place.owner.group}")
            return SubmittedJobs((), ExitCode.INTERRUPTED)
        if ended[-1] is None:
            app.notify(f"{one.name} was deleted")
    return SubmittedJobs(tuple(one for one in ended if one is not None), max(map(exit_code_of, ended)))


def watch_job(
    app: ClusterContext, look: Callable[[], JobState | None], sleep: Callable[[float], None] = time.sleep
) -> JobState | None:
    """Sends each change of a job to the front end. Returns its last state, or None for a deleted job."""
    last = ""
    while (job := look()) is not None:
        if (text := job_text(job)) != last:
            app.frontend.notify(JobChanged(job))
            last = text
        if job.state in ENDED:
            return job
        sleep(_POLL_S)
    return None


def exit_code_of(job: JobState | None) -> ExitCode:
    """6 for a job that failed or was deleted."""
    return ExitCode.OK if job is not None and job.state == "SUCCEEDED" else ExitCode.STEP_FAILED
