"""The list of jobs, and one job."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from pai_install.app.job_quota import utilization_in
from pai_install.console.endpoint import ApiCall
from pai_install.console.job_access import find_job, read_job_now
from pai_install.console.monitoring import gpus_of_pods
from pai_install.console.openpai.job import full_name, gpus_of
from pai_install.console.openpai.states import STATES
from pai_install.console.pages.charts import chart
from pai_install.console.pages.endpoint import action, page, shown
from pai_install.console.pages.job_web_page import open_page, opens, ssh_command
from pai_install.console.pages.live import log_page, state_key
from pai_install.console.pages.waiting import job_address, why_waiting
from pai_install.console.routes.job_changes import stop_job
from pai_install.console.routes.job_events import events_of
from pai_install.console.routes.jobs import kept_file, read_query
from pai_install.console.services import ConsoleServices
from pai_install.console.sign_in.forms import sent_to
from pai_install.jobs.state import JobState

_PAGE = 100
# instances of a job that a page shows
_MOST_INSTANCES = 1000
_CHART_HOURS = 6


def list_jobs(call: ApiCall) -> Response:
    """Jobs that the caller may see, a page of them. All filters are in the address."""
    model, query = call.services.model, replace(read_query(call), limit=_PAGE)
    visible = model.visible(call.caller)
    views, total = model.jobs.page(query, visible), model.jobs.count(query, visible)
    before = max(0, query.offset - _PAGE) if query.offset else None
    after = query.offset + _PAGE if query.offset + _PAGE < total else None
    return shown(
        call,
        "jobs.html",
        views=views,
        total=total,
        first=query.offset + 1 if views else 0,
        last=query.offset + len(views),
        before=_address(call, before),
        after=_address(call, after),
        query=dict(call.query),
        states=sorted(set(STATES.values())),
        clusters=[one.name for one in model.profile.require_scheduling().clusters],
        full_name=full_name,
        gpus_of=gpus_of,
        age=int(model.age),
    )


def _address(call: ApiCall, offset: int | None) -> str:
    """The address of another page with the same filters, "" for none."""
    if offset is None:
        return ""
    others = {name: value for name, value in call.query.items() if name not in {"offset", "limit"}}
    return f"/jobs?{urlencode({**others, 'offset': offset})}"


def show_job(call: ApiCall) -> Response:
    """One job with its instances, their logs, its events, and its file."""
    job = read_job_now(call)
    instances = job.instances[:_MOST_INSTANCES]
    logs = {one.pod: log_page(job, one.role, one.index) for one in instances if one.pod}
    return shown(
        call,
        "job.html",
        stops=not job.ended and job.state != "STOPPING" and (call.caller.admin or job.user == call.caller.label),
        address=job_address(job),
        name=full_name(job),
        job=job,
        gpus=gpus_of(job),
        instances=instances,
        hidden=len(job.instances) - len(instances),
        logs=logs,
        changes=f"{job_address(job)}/changes" if not job.ended and not job.gone else "",
        state_key=state_key(find_job(call).job),
        opens=opens(call, job),
        ssh=ssh_command(call, job),
        why=_why(job),
        use=utilization_in(call.services.model.profile, job, time.time()) if not job.ended else None,
        **why_waiting(call, job),
        chart=chart(call, gpus_of_pods(job.namespace, [one.pod for one in job.instances]), _CHART_HOURS),
        chart_hours=_CHART_HOURS,
        events=events_of(call, job)[-50:] if not job.gone else [],
        file=kept_file(call),
    )


def _why(job: JobState) -> str:
    if job.stopped_by:
        return f"stopped by {job.stopped_by}" + (f": {job.stopped_why}" if job.stopped_why else "")
    return job.abnormal or job.why


def stop_from_page(call: ApiCall, form: Mapping[str, str]) -> Response:
    """Stops a job."""
    del form
    job = read_job_now(call)
    stop_job(call, job)
    return sent_to(job_address(job))


def routes(services: ConsoleServices) -> tuple[Route, ...]:
    """All routes."""
    return (
        Route("/jobs", page(list_jobs), methods=["GET"]),
        Route("/jobs/{name}", page(show_job), methods=["GET"]),
        Route("/jobs/{name}/open", page(open_page), methods=["GET"]),
        action(services, "/jobs/{name}/stop", stop_from_page),
    )
