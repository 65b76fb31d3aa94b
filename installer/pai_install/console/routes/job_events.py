"""Events of a job and its pods."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pai_install.cluster.client import Select
from pai_install.console.endpoint import ApiCall, endpoint
from pai_install.console.job_access import read_job_now
from pai_install.console.openpai.job import milliseconds
from pai_install.documents.problem import printable
from pai_install.jobs.pod_status import Instance
from pai_install.jobs.state import JobState
from pai_install.jobs.warning_events import EVENTS
from pai_install.kube.objects import JsonObject, child, number, text

# names that are asked for one by one. Of a larger gang all events of the namespace are read once.
_MOST_NAMES = 20
_MOST_EVENTS = 1000
_MOST_TEXT = 2000


def events_of(call: ApiCall, job: JobState, kind: str = "") -> list[dict[str, object]]:
    """Events of a job, the latest last, read as the caller. kind: "Warning", "Normal", or "" for both."""
    pods = {one.pod: one for one in job.instances if one.pod}
    own = {job.label, *(text(child(one, "metadata").get("name")) for one in call.services.model.jobs.status_of(job))}
    wanted = [*own, *pods]
    type_of = f",type={kind}" if kind else ""
    if len(wanted) <= _MOST_NAMES:
        selects = [Select((EVENTS,), job.namespace, fields=f"involvedObject.name={name}{type_of}") for name in wanted]
    else:
        selects = [Select((EVENTS,), job.namespace, fields=type_of.lstrip(","))]
    found = [event for answer in call.client.list(*selects) for event in answer]
    rows = [_event(one, pods.get(name)) for one in found if (name := _about(one)) in own or name in pods]
    return sorted(rows, key=lambda row: str(row["lastTimestamp"] or ""))[-_MOST_EVENTS:]


def _about(event: JsonObject) -> str:
    return text(child(event, "involvedObject").get("name"))


def _event(event: JsonObject, one: Instance | None) -> dict[str, object]:
    series = child(event, "series")
    last = text(series.get("lastObservedTime")) or text(event.get("lastTimestamp")) or text(event.get("eventTime"))
    first = text(event.get("firstTimestamp")) or text(event.get("eventTime"))
    return {
        "uid": text(child(event, "metadata").get("uid")),
        "taskroleName": one.role if one is not None else None,
        "taskName": one.pod if one is not None else None,
        "taskIndex": one.index if one is not None else None,
        "type": text(event.get("type")),
        "reason": printable(text(event.get("reason")))[:_MOST_TEXT],
        "message": printable(text(event.get("message")))[:_MOST_TEXT],
        "firstTimestamp": _time(first),
        "lastTimestamp": _time(last),
        "count": number(series.get("count")) or number(event.get("count")) or 1,
        "sourceComponent": text(child(event, "source").get("component")) or text(event.get("reportingComponent")),
        "sourceHost": text(child(event, "source").get("host")) or None,
        "event": None,
    }


def _time(timestamp: str) -> str | None:
    return timestamp if milliseconds(timestamp) is not None else None


def list_events(call: ApiCall) -> Response:
    """Events of a job."""
    kind = next(_kinds(call), "")
    found = events_of(call, read_job_now(call), kind)
    return JSONResponse({"totalCount": len(found), "data": found})


def _kinds(call: ApiCall) -> Iterator[str]:
    return (word for word in call.query.getlist("type") if word in {"Warning", "Normal"})


ROUTES = (Route("/api/v2/jobs/{name}/events", endpoint(list_events), methods=["GET"]),)
