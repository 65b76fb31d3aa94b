"""The list of jobs, and one job."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote, urlencode

from starlette.requests import Request, cookie_parser
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from pai_install.console.caller import Caller
from pai_install.console.endpoint import ApiCall, call_of
from pai_install.console.job_access import read_job_now
from pai_install.console.openpai.job import full_name, gpus_of
from pai_install.console.openpai.states import STATES
from pai_install.console.pages.endpoint import page
from pai_install.console.pages.rendering import FOLDER, rendered
from pai_install.console.routes.job_changes import stop_job
from pai_install.console.routes.job_events import events_of
from pai_install.console.routes.jobs import kept_file, read_query
from pai_install.console.routes.logs import TAIL, log_address
from pai_install.console.services import ConsoleServices
from pai_install.console.sign_in.forms import PageRequest, form_token, sent_to
from pai_install.console.sign_in.forms import page as form_page
from pai_install.console.sign_in.sessions import COOKIE
from pai_install.jobs.state import JobState

_PAGE = 100
# instances of a job that a page shows
_MOST_INSTANCES = 1000


def list_jobs(call: ApiCall) -> Response:
    """Jobs that the caller may see, a page of them. All filters are in the address."""
    model, query = call.services.model, replace(read_query(call), limit=_PAGE)
    visible = model.visible(call.caller)
    views, total = model.jobs.page(query, visible), model.jobs.count(query, visible)
    before = max(0, query.offset - _PAGE) if query.offset else None
    after = query.offset + _PAGE if query.offset + _PAGE < total else None
    return rendered(
        "jobs.html",
        title="Jobs",
        caller=call.caller,
        form=form_of(call),
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
    shown = job.instances[:_MOST_INSTANCES]
    logs = {one.pod: log_address(call, job, one, tail=TAIL) for one in shown if one.pod}
    return rendered(
        "job.html",
        title=job.name,
        caller=call.caller,
        form=form_of(call),
        stops=not job.ended and job.state != "STOPPING" and (call.caller.admin or job.user == call.caller.label),
        address=f"/jobs/{quote(full_name(job), safe='~')}",
        job=job,
        gpus=gpus_of(job),
        instances=shown,
        hidden=len(job.instances) - len(shown),
        logs=logs,
        why=_why(job),
        events=events_of(call, job)[-50:] if not job.gone else [],
        file=kept_file(call),
    )


def _why(job: JobState) -> str:
    if job.stopped_by:
        return f"stopped by {job.stopped_by}" + (f": {job.stopped_why}" if job.stopped_why else "")
    return job.abnormal or job.why


async def _home(request: Request) -> Response:
    del request
    return RedirectResponse("/jobs", 303)


async def _style(request: Request) -> Response:
    del request
    return FileResponse(FOLDER / "console.css", media_type="text/css")


def form_of(call: ApiCall) -> str:
    """The token of forms in the browser of a caller."""
    return form_token(cookie_parser(call.headers.get("cookie", "")).get(COOKIE, ""))


def stop_route(services: ConsoleServices) -> Route:
    """The form that stops a job. Forms of other sites are refused."""

    def stop(given: PageRequest) -> Response:
        if given.caller is None:
            return sent_to("/login")
        call = call_of(services, given.caller, given.request)
        job = read_job_now(call)
        stop_job(call, job)
        return sent_to(f"/jobs/{quote(full_name(job), safe='~')}")

    def caller_of(request: Request) -> Caller | None:
        return next((it for one in services.page_authenticators if (it := one.authenticate(request))), None)

    return Route("/jobs/{name}/stop", form_page(services.settings, caller_of, stop), methods=["POST"])


ROUTES = (
    Route("/", _home, methods=["GET"]),
    Route("/jobs", page(list_jobs), methods=["GET"]),
    Route("/jobs/{name}", page(show_job), methods=["GET"]),
    Route("/console.css", _style, methods=["GET"]),
)
