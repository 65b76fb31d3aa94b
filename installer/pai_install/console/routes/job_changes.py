"""Submission, stop, start, and tags of jobs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pai_install.app.cluster_context import ClusterContext
from pai_install.app.code_upload import forget_code, kept_code
from pai_install.app.frontend import Event, Message, Question
from pai_install.app.job_submission import submit_reading
from pai_install.app.jobs import end_job
from pai_install.app.requested_job import JobOptions, with_code
from pai_install.cluster.client import ApiError, ClusterClient, Impersonation, Patch
from pai_install.console.endpoint import SUBMISSIONS, ApiCall, endpoint
from pai_install.console.errors import RestError, forbidden, invalid
from pai_install.console.job_access import read_job_now
from pai_install.console.openpai.json_text import json_text
from pai_install.console.routes.jobs import kept_file
from pai_install.jobs.code import CodeArchive, StoredCode
from pai_install.jobs.compile import names
from pai_install.jobs.masking import has_mask
from pai_install.jobs.model import Job
from pai_install.jobs.pod_status import ENDED
from pai_install.jobs.read import JobReading, read_job_text
from pai_install.jobs.state import JobState
from pai_install.kube.model import Ref
from pai_install.profile.model import ClusterProfile
from pai_install.scheduling.job_queue import queue_of
from pai_install.scheduling.model import VirtualCluster
from pai_install.site.groups import DEFAULT

MAX_FILE = 512 * 1024
_NAME = "/api/v2/jobs/{name}"
_OLD = "/api/v1/user/{user}/jobs"
_MAX_TAGS, _MAX_TAG = 64, 64
# the controllers of a job change its object too
_TAG_TRIES = 10
# the longest wait for the watch that tells of a change, and the time between two looks
_SEEN_S, _LOOK_S = 5.0, 0.02
_FILE = Path("job.yaml")
_STOPPING = "STOPPING"
_SECRETS = "the cluster does not keep the secrets of this job: write them at /jobs/new?from={name}, or submit its file"
# an ended job makes room for its next start. Pods have half a minute to end
_END_S = 45.0


@dataclass
class _Notices:
    """A front end that keeps what use cases say."""

    lines: list[str] = field(default_factory=list)

    def notify(self, event: Event) -> None:
        """Keeps messages."""
        if isinstance(event, Message):
            self.lines.append(event.text)

    def confirm(self, question: Question) -> bool:
        """The request is the answer."""
        del question
        return True

    def require_answers(self) -> None:
        """Every request answers."""


class CallerContext(ClusterContext):
    """The context of use cases for a caller: the client acts as the caller."""

    def __init__(self, call: ApiCall) -> None:
        self._profile, self._client, self._user = call.services.model.profile, call.client, call.caller.label
        self.frontend: _Notices = _Notices()

    @property
    def profile(self) -> ClusterProfile:
        """The site."""
        return self._profile

    @property
    def cluster(self) -> ClusterClient:
        """A client that acts as the caller."""
        return self._client

    @property
    def user(self) -> str:
        """The caller, as labels write it."""
        return self._user

    def submitter(self, user: str) -> Impersonation | None:
        """None: the client is the caller already."""
        del user
        return None


def submit(call: ApiCall) -> Response:
    """Submits a file as the caller."""
    if "user" in call.path and call.path["user"] != call.caller.label:
        raise forbidden(f"{call.caller.label} cannot submit jobs of {call.path['user']}")
    try:
        content = call.body.decode()
    except UnicodeDecodeError as error:
        raise RestError(HTTPStatus.BAD_REQUEST, "InvalidProtocolError", "the job file is not UTF-8") from error
    return JSONResponse({"status": 202, "message": submit_text(call, content)}, HTTPStatus.ACCEPTED)


def submit_text(call: ApiCall, content: str, group: str = "", code: CodeArchive | StoredCode | None = None) -> str:
    """Submits the text of a job file, in a group of the caller. Returns what happened, in words. Raises PaiError."""
    context = CallerContext(call)
    reading = with_code(read_job_text(content, _FILE), code)
    chosen = group or group_for(call, reading)
    submission = submit_reading(context, JobOptions(group=chosen, user=call.caller.label), reading)
    names_made = ", ".join(job.name for job in submission.jobs)
    return f"{names_made} is submitted in group {chosen}" + "".join(f"\n{line}" for line in context.frontend.lines)


def group_for(call: ApiCall, reading: JobReading) -> str:
    """The group of a new job: the file's, else the caller's first one with the virtual cluster. Raises RestError."""
    profile, own = call.services.model.profile, call.caller.groups
    if not own:
        raise forbidden(f"{call.caller.label} is in no group")
    named = reading.job.group if isinstance(reading.job, Job) else None
    if named is not None:
        if named not in own:
            raise forbidden(f"{call.caller.label} is not in the group {named}")
        return named
    wanted = _cluster_of(reading)
    cluster = profile.require_cluster(wanted) if wanted else None
    fitting = _groups_with(profile, own, cluster)
    if not fitting and cluster is not None:
        raise forbidden(f"no group of {call.caller.label} may use the virtual cluster {cluster.name}")
    return fitting[0] if fitting else own[0]


def _cluster_of(reading: JobReading) -> str:
    """The virtual cluster that a file names, "" for none."""
    if isinstance(reading.job, Job):
        return reading.job.virtual_cluster or ""
    if reading.job is None:
        return ""
    first = reading.job.jobs[0]
    return queue_of(first.content, first.kind).cluster


def _groups_with(profile: ClusterProfile, own: Sequence[str], cluster: VirtualCluster | None) -> list[str]:
    clusters = profile.require_scheduling().clusters
    if cluster is None:
        usual = next((one for one in clusters if one.name == DEFAULT), None)
        cluster = usual if usual is not None and set(own) & set(usual.groups) else None
    allowed = cluster.groups if cluster is not None else {name for one in clusters for name in one.groups}
    return [name for name in own if name in allowed]


def change_execution(call: ApiCall) -> Response:
    """Stops a job, or submits its file again."""
    value = call.json().get("value")
    if value not in ("STOP", "START"):
        raise invalid("value is STOP or START")
    job = read_job_now(call)
    done = stop_job(call, job) if value == "STOP" else _start(call, job)
    return JSONResponse({"status": 202, "message": done}, HTTPStatus.ACCEPTED)


def stop_job(call: ApiCall, job: JobState) -> str:
    """Deletes a job as the caller. Returns what happened, in words. Raises ApiError."""
    if job.ended or job.state == _STOPPING:
        return f"{job.name} is not running"
    context = CallerContext(call)
    try:
        end_job(context, job)
    except ApiError as error:
        # administrators only delete jobs of others, and owners only delete pods: neither may note who did
        if error.reason != "Forbidden":
            raise
        end_job(context, job, noted=False)
    return f"{job.name} is stopped"


def _start(call: ApiCall, job: JobState) -> str:
    if job.user != call.caller.label:
        raise forbidden(f"this job is {job.user}'s")
    if not job.ended and job.state != _STOPPING:
        raise _not_ended(job)
    content = kept_file(call)
    if content is None:
        raise RestError(HTTPStatus.NOT_FOUND, "NoJobConfigError", "the cluster keeps no file of this job")
    if has_mask(content):
        raise RestError(HTTPStatus.NOT_FOUND, "NoJobConfigError", _SECRETS.format(name=f"{job.user}~{job.name}"))
    code = kept_code(call.client, job)
    if not job.gone and (job.state in ENDED or job.state == _STOPPING):
        _free_name(call, job)
        forget_code(call.client, job)
    return submit_text(call, content, job.group, code)


def _free_name(call: ApiCall, job: JobState) -> None:
    """Deletes an ended job, and waits for the end of one that stops. Raises RestError and ApiError."""
    with call.services.restarts.held(call.caller.name):
        try:
            end_job(CallerContext(call), job, wait_s=_END_S, noted=False)
        except ApiError as error:
            if error.reason != "Timeout":
                raise
            raise _not_ended(job) from error


def _not_ended(job: JobState) -> RestError:
    return RestError(HTTPStatus.CONFLICT, "ConflictJobError", f"{job.name} has not ended: {job.state}")


def change_tag(call: ApiCall) -> Response:
    """Adds or removes a tag of a job."""
    value = call.json().get("value")
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_TAG or not value.isprintable() or "," in value:
        raise invalid(f"value is a tag of at most {_MAX_TAG} characters without a comma")
    for chances in reversed(range(_TAG_TRIES)):
        job = read_job_now(call)
        tags = _changed_tags(call, job, value)
        try:
            call.client.patch([_tagged(job, tags)])
            break
        except ApiError as error:
            # the object has changed since it was read, perhaps its tags
            if error.reason != "Conflict" or not chances:
                raise
    _await_tag(call, job, value)
    return JSONResponse({"status": 200, "message": f"{job.name} has the tags {', '.join(tags) or 'none'}"})


def _changed_tags(call: ApiCall, job: JobState, value: str) -> tuple[str, ...]:
    if job.gone:
        raise forbidden(f"{job.name} is deleted: its tags stay")
    if call.method == "PUT":
        tags = job.tags if value in job.tags else (*job.tags, value)
    else:
        tags = tuple(tag for tag in job.tags if tag != value)
    if len(tags) > _MAX_TAGS:
        raise invalid(f"a job has at most {_MAX_TAGS} tags")
    return tags


def _tagged(job: JobState, tags: tuple[str, ...]) -> Patch:
    """The change of an object that is still as it was read."""
    notes = {names.TAGS: json_text({"tags": tags})}
    metadata = {"resourceVersion": job.version, "annotations": notes}
    return Patch(Ref(job.kind.full_name, job.label, job.namespace), {"metadata": metadata})


def _await_tag(call: ApiCall, job: JobState, value: str) -> None:
    """Waits until lists show the change. Clients of OpenPAI list jobs by a tag right after they set it."""
    # the memory alone: a look that asks the cluster would ask it 50 times a second
    jobs, end = call.services.model.jobs, time.monotonic() + _SEEN_S
    wanted = call.method == "PUT"
    while time.monotonic() < end:
        found = (it.job for it in jobs.find(job.user, job.name, None))
        if any(it.uid == job.uid and (value in it.tags) == wanted for it in found):
            return
        time.sleep(_LOOK_S)


ROUTES = (
    Route("/api/v2/jobs", endpoint(submit, SUBMISSIONS, MAX_FILE), methods=["POST"]),
    Route(_OLD, endpoint(submit, SUBMISSIONS, MAX_FILE), methods=["POST"]),
    Route(f"{_NAME}/executionType", endpoint(change_execution), methods=["PUT"]),
    Route(f"{_OLD}/{{job}}/executionType", endpoint(change_execution), methods=["PUT"]),
    Route(f"{_NAME}/tag", endpoint(change_tag), methods=["PUT", "DELETE"]),
)
