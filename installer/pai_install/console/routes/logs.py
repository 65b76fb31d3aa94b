"""Logs of instances: signed addresses, read as their caller."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from pai_install.agents.common.records import LOGS
from pai_install.cluster.client import Cancellation, LogWindow
from pai_install.console.caller import Caller
from pai_install.console.endpoint import ApiCall, endpoint, error_response
from pai_install.console.errors import RestError, rest_error, unauthorized
from pai_install.console.job_access import find_job, read_job_now
from pai_install.console.links import LogRequest
from pai_install.console.services import ConsoleServices
from pai_install.console.streams import EventResponse, events
from pai_install.errors import PaiError
from pai_install.jobs.pod_status import Instance
from pai_install.jobs.state import JobState
from pai_install.kube.model import Ref
from pai_install.kube.objects import child, words

PLACE = "/log-manager/logs"
_TASK = "/api/v2/jobs/{name}/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}/attempts/{task}/logs"
_NAMES = ("all", "stdout", "stderr")
# lines of the end of a log
TAIL = 500
_PLAIN = {"Content-Disposition": "inline", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


def no_log(job: JobState, role: str, index: str) -> RestError:
    """An instance without a log."""
    return RestError(HTTPStatus.NOT_FOUND, "NoTaskLogError", f"{job.name} has no log of {role[:64]} {index[:16]}")


def instance_of(job: JobState, role: str, index: str) -> Instance:
    """The instance with a pod. Raises RestError."""
    found = (one for one in job.instances if one.role == role and str(one.index) == index and one.pod)
    one = next(found, None)
    if one is None:
        raise no_log(job, role, index)
    return one


def log_address(call: ApiCall, job: JobState, one: Instance, *, tail: int = -1, restart: int | None = None) -> str:
    """The signed address of a log. restart: of its container, None for the last one."""
    previous = restart is not None and restart < one.restarts
    record = f"{find_job(call).record}.{LOGS}" if one.gone else ""
    return sealed_address(call, LogRequest(job.namespace, one.pod, tail, previous=previous, record=record))


def sealed_address(call: ApiCall, request: LogRequest) -> str:
    """The signed address of a log of any pod. It has the rights of the caller."""
    return f"{PLACE}?{urlencode({'token': call.services.links.seal(call.caller, request)})}"


def log_text(call: ApiCall, job: JobState, one: Instance, *, tail: int) -> str:
    """The last lines of an instance, read as the caller. Raises ApiError."""
    record = f"{find_job(call).record}.{LOGS}" if one.gone else ""
    return _text(call.services, call.caller, LogRequest(job.namespace, one.pod, tail, record=record))


def list_locations(call: ApiCall) -> Response:
    """Addresses of the log of an instance."""
    job = read_job_now(call)
    one = instance_of(job, call.path["role"], call.path["index"])
    restart = int(call.path["task"]) if call.path["task"].isdecimal() and len(call.path["task"]) < 9 else -1
    # the kubelet keeps the log of the last container and of the one before
    if not max(0, one.restarts - 1) <= restart <= one.restarts:
        raise no_log(job, call.path["role"], call.path["index"])
    tail = TAIL if call.query.get("tail-mode", "").lower() == "true" else -1
    address = log_address(call, job, one, tail=tail, restart=restart)
    return JSONResponse({"locations": [{"name": name, "uri": address} for name in _NAMES]})


async def read_log(request: Request) -> Response:
    """The log of a signed address, as text or as events."""
    services: ConsoleServices = request.app.state.services
    try:
        opened = services.links.open(request.query_params.get("token", ""))
        if opened is None or (caller := await run_in_threadpool(services.current, opened[0])) is None:
            raise unauthorized("this address is expired: ask for it again")
        log = opened[1]
        services.rates.take("api", caller.name)
        if request.query_params.get("follow", "").lower() == "true" and not log.record:
            return _followed(services, caller, log)
        text = await run_in_threadpool(_text, services, caller, log)
        return PlainTextResponse(text, headers=_PLAIN)
    except PaiError as error:
        return error_response(rest_error(error))
    except RestError as error:
        return error_response(error)


def _text(services: ConsoleServices, caller: Caller, log: LogRequest) -> str:
    client = services.clients.of(caller)
    if log.record:
        # who may read the recorded end of the log may read the rest of it
        (lines,) = client.get([Ref("configmap", log.record, log.namespace)])
        stored = services.logs.text(log.namespace, log.pod, log.tail) if services.logs is not None else ""
        return stored or words(child(lines or {}, "data")).get(log.pod, "")
    pod = Ref("pod", log.pod, log.namespace)
    return client.logs(pod, container=log.container, tail=log.tail, previous=log.previous)


def _followed(services: ConsoleServices, caller: Caller, log: LogRequest) -> Response:
    services.streams.enter(caller.name)

    def follow(cancellation: Cancellation) -> Iterator[str]:
        window = LogWindow(follow=True, tail=log.tail, cancellation=cancellation)
        pod = Ref("pod", log.pod, log.namespace)
        return services.clients.of(caller).log_lines(pod, window, container=log.container)

    content = events(follow, lambda: services.still(caller) is not None)
    return EventResponse(content, lambda: services.streams.leave(caller.name))


ROUTES = (Route(_TASK, endpoint(list_locations), methods=["GET"]),)
READ = Route(PLACE, read_log, methods=["GET"])
