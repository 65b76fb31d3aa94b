"""Pages that grow with a script of ours: the log of an instance, and the state of a job. Both work without it."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncGenerator
from dataclasses import replace
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from pai_install.cluster.client import ApiError
from pai_install.console.caller import CallerKind
from pai_install.console.endpoint import ApiCall, call_of, error_response
from pai_install.console.errors import RestError, rest_error, unauthorized
from pai_install.console.job_access import find_job, read_job_now
from pai_install.console.pages.endpoint import page, page_caller, shown
from pai_install.console.pages.rendering import FOLDER, last_part
from pai_install.console.pages.waiting import job_address
from pai_install.console.routes.logs import TAIL, instance_of, log_address, log_text
from pai_install.console.services import ConsoleServices
from pai_install.console.streams import EventResponse
from pai_install.errors import PaiError
from pai_install.jobs.state import JobState

# a browser opens the stream again
_LONGEST_S = 600.0
_LOOK_S, _COMMENT_S = 1.0, 15.0


def log_page(job: JobState, role: str, index: int) -> str:
    """The address of the page of a log."""
    return f"{job_address(job)}/log/{quote(role, safe='')}/{index}"


def show_log(call: ApiCall) -> Response:
    """The last lines of an instance, which grow in a browser with scripts."""
    job = read_job_now(call)
    one = instance_of(job, call.path["role"], call.path["index"])
    plain = log_address(call, job, one, tail=TAIL)
    found, problem = "", ""
    try:
        found = log_text(call, job, one, tail=TAIL)
    except ApiError as error:
        problem = rest_error(error).message
    grows = not one.gone and one.state in {"RUNNING", "STARTING", "STOPPING"} and not problem
    return shown(
        call,
        "log.html",
        job=job,
        one=one,
        address=job_address(job),
        here=log_page(job, one.role, one.index),
        plain=plain,
        follow=f"{plain}&follow=true" if grows else "",
        text=last_part(found),
        problem=problem,
        lines=TAIL,
    )


def state_key(job: JobState) -> str:
    """Changes with the state of the job and of its instances. It is the same in all replicas."""
    states = sorted((one.role, one.index, one.state) for one in job.instances)
    return f"{job.state}-{zlib.crc32(repr(states).encode()):x}"


async def follow_state(request: Request) -> Response:
    """Server-sent events: the state of a job, now and after each change."""
    services: ConsoleServices = request.app.state.services
    try:
        caller = page_caller(services, request)
        if caller is None or caller.kind is CallerKind.GUEST:
            raise unauthorized()
        services.rates.take("api", caller.name)
        call = call_of(services, caller, request)
        first = await run_in_threadpool(find_job, call)
        services.streams.enter(caller.name)
    except PaiError as error:
        return error_response(rest_error(error))
    except RestError as error:
        return error_response(error)
    content = _changes(call, state_key(first.job))
    return EventResponse(content, lambda: services.streams.leave(caller.name))


async def _changes(call: ApiCall, last: str) -> AsyncGenerator[str, None]:
    """Yields the state, until the job or the user is gone."""
    end, sent_at = time.monotonic() + _LONGEST_S, time.monotonic()
    yield f"data: {last}\n\n"
    while time.monotonic() < end and (now := await run_in_threadpool(call.services.still, call.caller)):
        call = replace(call, caller=now)
        await asyncio.sleep(_LOOK_S)
        try:
            found = state_key((await run_in_threadpool(find_job, call)).job)
        except (PaiError, RestError):
            found = "gone"
        if found != last:
            last, sent_at = found, time.monotonic()
            yield f"data: {found}\n\n"
        elif time.monotonic() - sent_at > _COMMENT_S:
            sent_at = time.monotonic()
            yield ":\n\n"
        if found == "gone":
            return


async def _script(request: Request) -> Response:
    del request
    return FileResponse(FOLDER / "console.js", media_type="text/javascript")


def routes(services: ConsoleServices) -> tuple[Route, ...]:
    """All routes."""
    del services
    return (
        Route("/console.js", _script, methods=["GET"]),
        Route("/jobs/{name}/log/{role}/{index}", page(show_log), methods=["GET"]),
        Route("/jobs/{name}/changes", follow_state, methods=["GET"]),
    )
