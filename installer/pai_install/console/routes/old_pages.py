"""Pages of OpenPAI's web portal that clients open in a browser: redirects to pages of the console."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route


async def old_job(request: Request) -> Response:
    """The page of one job."""
    user, name = request.query_params.get("username", ""), request.query_params.get("jobName", "")
    return _to(f"/jobs/{quote(f'{user}~{name}', safe='')}" if user and name else "/jobs")


async def old_jobs(request: Request) -> Response:
    """The list of jobs."""
    del request
    return _to("/jobs")


def _to(path: str) -> Response:
    """Paths of our own only."""
    return RedirectResponse(path, 302)


ROUTES = (
    Route("/job-detail.html", old_job, methods=["GET"]),
    *(Route(path, old_jobs, methods=["GET"]) for path in ("/job-list.html", "/submit.html", "/index.html")),
)
