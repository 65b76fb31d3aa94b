"""Queries of OpenPAI's web portal to Prometheus. Any other query is refused, and none is passed on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pai_install.console.endpoint import ADMINISTRATORS_ONLY, BROWSERS, ApiCall, endpoint
from pai_install.console.errors import RestError, forbidden, invalid, monitoring_away
from pai_install.console.monitoring import MonitoringReader, NoMonitoringError, QueryWindow, Series, idle_gpus
from pai_install.console.openpai.portal_queries import (
    IDLE_JOBS,
    INSTANT,
    content,
    instant,
    of_jobs,
    of_nodes,
    query_of_nodes,
    span,
)

_AT, _SPAN = frozenset({"query", "time"}), frozenset({"query", "start", "end", "step"})
_MOST_QUERY = 300


def read_instant(call: ApiCall) -> Response:
    """The values of a query at one time."""
    found = _fields(call, _AT)
    return _answer(call, found["query"], instant(found, time.time()), ranged=False)


def read_range(call: ApiCall) -> Response:
    """The values of a query over a time."""
    found = _fields(call, _SPAN)
    return _answer(call, found["query"], span(found, time.time()), ranged=True)


def _fields(call: ApiCall, names: frozenset[str]) -> Mapping[str, str]:
    """The fields of an address, each once. Raises RestError."""
    pairs = call.query.multi_items()
    found = dict(pairs)
    if len(found) != len(pairs) or not set(found) <= names or not 0 < len(found.get("query", "")) <= _MOST_QUERY:
        raise invalid(f"fields of this query are {', '.join(sorted(names))}, each once")
    return found


def _answer(call: ApiCall, query: str, when: QueryWindow | None, *, ranged: bool) -> Response:
    expression = query_of_nodes(query)
    if ranged == (query in INSTANT) or not (expression or query == IDLE_JOBS):
        raise invalid("the console answers the queries of OpenPAI's web portal alone")
    if when is None:
        raise invalid("the time is none of the last 24 hours, or has too many steps")
    if expression and not call.caller.admin:
        raise forbidden(ADMINISTRATORS_ONLY)
    monitoring = call.services.monitoring
    if monitoring is None:
        absent = RestError(HTTPStatus.NOT_IMPLEMENTED, "NotImplementedError", "this site has no monitoring")
        return _unanswered(expression, absent)
    try:
        found = of_nodes(monitoring.series(expression, when)) if expression else _idle_jobs(call, monitoring, when)
    except NoMonitoringError:
        return _unanswered(expression, monitoring_away())
    return JSONResponse(content(found, ranged=ranged))


def _unanswered(expression: str, error: RestError) -> Response:
    """After an error for idle jobs, the portal's home of administrators is blank while a job runs. Raises RestError."""
    if expression:
        raise error
    return JSONResponse({**content([], ranged=False), "warnings": [error.message]})


def _idle_jobs(call: ApiCall, monitoring: MonitoringReader, when: QueryWindow) -> list[tuple[dict[str, str], Series]]:
    """Jobs with idle GPUs that the caller may list."""
    model = call.services.model
    namespaces = model.visible(call.caller)
    expression = idle_gpus(namespaces if namespaces is None else sorted(namespaces))
    jobs = {
        (job.namespace, one.pod): f"{job.user}~{job.name}"
        for job in model.jobs.unfinished()
        if namespaces is None or job.namespace in namespaces
        for one in job.instances
        if one.pod
    }
    return of_jobs(monitoring.series(expression, when), jobs) if expression and jobs else []


ROUTES = (
    Route("/prometheus/api/v1/query", endpoint(read_instant, BROWSERS), methods=["GET"]),
    Route("/prometheus/api/v1/query_range", endpoint(read_range, BROWSERS), methods=["GET"]),
)
