"""Lists and details of jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from http import HTTPStatus

from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from pai_install.console.endpoint import LISTS, ApiCall, endpoint
from pai_install.console.errors import RestError, invalid
from pai_install.console.job_access import directory, find_job, no_job, read_job_now
from pai_install.console.model.query import DEFAULT_LIMIT, MAX_LIMIT, ORDERS, JobQuery
from pai_install.console.model.view import JobView
from pai_install.console.openpai.job import attempt, details, task_history
from pai_install.console.openpai.json_text import json_text
from pai_install.jobs.history import kept_jobs
from pai_install.jobs.job_file import unpacked
from pai_install.kube.model import Ref

_NAME = "/api/v2/jobs/{name}"
_OLD = "/api/v1/user/{user}/jobs/{job}"
_TASK = f"{_NAME}/attempts/{{attempt}}/taskRoles/{{role}}/taskIndex/{{index}}/attempts"
# attempts of a job that a history lists
_MOST_ATTEMPTS = 100
_NO_PRIORITY = "default"
# jobs of a part of an answer
_PART = 100


def read_query(call: ApiCall) -> JobQuery:
    """The filters, the order, and the page of a list. Raises RestError for a wrong value."""
    field, _, direction = call.query.get("order", "submissionTime,DESC").partition(",")
    if field not in ORDERS or direction.upper() not in {"ASC", "DESC", ""}:
        raise invalid(f"order is FIELD,ASC or FIELD,DESC, and FIELD is one of {', '.join(ORDERS)}")
    users = _words(call, "username")
    return JobQuery(
        users=users | ({call.path["user"]} if "user" in call.path else set()),
        clusters=_words(call, "vc"),
        states=_words(call, "state"),
        keyword=call.query.get("keyword", ""),
        tags=_words(call, "tagsContain"),
        without_tags=_words(call, "tagsNotContain"),
        priorities=_priorities(call),
        order=field,
        descending=direction.upper() != "ASC",
        offset=_number(call, "offset", 0, 2**31),
        limit=_number(call, "limit", DEFAULT_LIMIT, MAX_LIMIT),
    )


def _words(call: ApiCall, name: str) -> frozenset[str]:
    return frozenset(word for word in call.query.get(name, "").split(",") if word)


def _priorities(call: ApiCall) -> frozenset[str]:
    """Names of priorities. "default" is OpenPAI's word for jobs whose file names none."""
    words, scheduling = _words(call, "jobPriority"), call.services.model.profile.scheduling
    if _NO_PRIORITY not in words or scheduling is None:
        return words
    return (words - {_NO_PRIORITY}).union(one.usual for one in scheduling.clusters)


def _number(call: ApiCall, name: str, default: int, most: int) -> int:
    word = call.query.get(name, "")
    if not word:
        return default
    if not word.isdecimal() or len(word) > 10 or int(word) > most:
        raise invalid(f"{name} is a number from 0 to {most}")
    return int(word)


def list_jobs(call: ApiCall) -> Response:
    """Jobs that the caller may see."""
    query, model = read_query(call), call.services.model
    visible = model.visible(call.caller)
    head, tail = "[", "]"
    if call.query.get("withTotalCount", "").lower() == "true":
        head, tail = f'{{"totalCount":{model.jobs.count(query, visible)},"data":[', "]}"
    content = _items(model.jobs.page(query, visible), head, tail)
    return StreamingResponse(content, media_type="application/json", headers={"X-Data-Age": f"{model.age:.0f}"})


async def _items(views: Sequence[JobView], head: str, tail: str) -> AsyncIterator[str]:
    """The list in parts, each of which waits for its reader: a whole one of 2 MB per slow reader fills the memory."""
    yield head
    for start in range(0, len(views), _PART):
        yield ("," if start else "") + ",".join(view.text for view in views[start : start + _PART])
    yield tail


def show_job(call: ApiCall) -> Response:
    """One job with its instances."""
    return JSONResponse(details(read_job_now(call)))


def show_attempt(call: ApiCall) -> Response:
    """An attempt of a job: the last one is the job itself."""
    job = read_job_now(call)
    number = _index(call, "attempt")
    if number > job.retries:
        raise no_job(f"{job.user}~{job.name}, attempt {number}")
    return JSONResponse(details(job) if number == job.retries else attempt(job, number))


def list_attempts(call: ApiCall) -> Response:
    """All attempts of a job, the last one first."""
    job = read_job_now(call)
    numbers = range(job.retries, max(-1, job.retries - _MOST_ATTEMPTS), -1)
    return JSONResponse([attempt(job, number) for number in numbers])


def show_old_attempt(call: ApiCall) -> Response:
    """An attempt in the history of a job."""
    job = read_job_now(call)
    number = _index(call, "attempt")
    if number > job.retries:
        raise no_job(f"{job.user}~{job.name}, attempt {number}")
    return JSONResponse(attempt(job, number))


def attempts_health(call: ApiCall) -> Response:
    """The history can be read, whatever the job: as in OpenPAI."""
    del call
    return PlainTextResponse("ok")


def list_task_attempts(call: ApiCall) -> Response:
    """Attempts of an instance."""
    job = read_job_now(call)
    role = next((one for one in job.roles if one.name == call.path["role"]), None)
    index = _index(call, "index")
    if role is None or index >= max(role.wanted, 1):
        raise RestError(HTTPStatus.NOT_FOUND, "NoTaskError", f"{job.name} has no instance {call.path['role']} {index}")
    return JSONResponse(task_history(job, role, index))


def _index(call: ApiCall, name: str) -> int:
    word = call.path[name]
    if not word.isdecimal() or len(word) > 9:
        raise invalid(f"{name} is a number")
    return int(word)


def kept_file(call: ApiCall) -> str | None:
    """The masked file of the job that an address means, read as the caller. None for a job without one."""
    view = find_job(call)
    job, reader = view.job, directory(call)
    if not job.gone:
        return reader.file_at(Ref(job.kind.full_name, job.label, job.namespace))
    (record,) = reader.client.get([Ref("configmap", view.record, job.namespace)])
    kept = next((one for one in kept_jobs([record] if record is not None else [])), None)
    return unpacked(kept.packed_file) if kept is not None and kept.job.uid == job.uid else None


def show_config(call: ApiCall) -> Response:
    """The file of a job as it was submitted, with secrets masked."""
    content = kept_file(call)
    if content is None:
        raise RestError(HTTPStatus.NOT_FOUND, "NoJobConfigError", "the cluster keeps no file of this job")
    if call.query.get("format") == "json":
        return Response(json_text(content), media_type="application/json")
    return Response(content, media_type="text/yaml")


def show_ssh(call: ApiCall) -> Response:
    """There is no SSH into instances."""
    find_job(call)
    raise RestError(HTTPStatus.NOT_FOUND, "NoJobSshInfoError", "jobs have no SSH here")


ROUTES = (
    Route("/api/v2/jobs", endpoint(list_jobs, LISTS), methods=["GET"]),
    Route("/api/v1/jobs", endpoint(list_jobs, LISTS), methods=["GET"]),
    Route("/api/v1/user/{user}/jobs", endpoint(list_jobs, LISTS), methods=["GET"]),
    Route(f"{_NAME}/config", endpoint(show_config), methods=["GET"]),
    Route(f"{_NAME}/ssh", endpoint(show_ssh), methods=["GET"]),
    Route(f"{_NAME}/job-attempts/healthz", endpoint(attempts_health), methods=["GET"]),
    Route(f"{_NAME}/job-attempts", endpoint(list_attempts), methods=["GET"]),
    Route(f"{_NAME}/job-attempts/{{attempt}}", endpoint(show_old_attempt), methods=["GET"]),
    Route(_TASK, endpoint(list_task_attempts), methods=["GET"]),
    Route(f"{_NAME}/attempts/{{attempt}}", endpoint(show_attempt), methods=["GET"]),
    Route(_NAME, endpoint(show_job), methods=["GET"]),
    Route(f"{_OLD}/config", endpoint(show_config), methods=["GET"]),
    Route(f"{_OLD}/ssh", endpoint(show_ssh), methods=["GET"]),
    Route(_OLD, endpoint(show_job), methods=["GET"]),
)
