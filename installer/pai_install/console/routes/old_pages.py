"""Pages of OpenPAI's web portal that clients and bookmarks open: redirects to pages of the console."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

# address of OpenPAI -> of the console. `/view.html` has to be unknown: clients tell old versions by it
PAGES: Mapping[str, str] = {
    "/index.html": "/",
    "/home.html": "/",
    "/login.html": "/login",
    "/job-list.html": "/jobs",
    "/submit.html": "/jobs/new",
    "/submit_v1.html": "/jobs/new?as=file",
    "/virtual-clusters.html": "/virtual-clusters",
    "/dashboard.html": "/virtual-clusters",
    "/cluster-view/services.html": "/services",
    "/cluster-view/hardware.html": "/nodes",
    "/cluster-view/k8s.html": "/services",
    "/cluster-view/abnormal-jobs.html": "/",
    "/storage.html": "/storages",
    "/user-profile.html": "/account",
    "/change-password.html": "/account",
    "/user-view.html": "/users",
    "/user-management.html": "/users",
    "/register.html": "/users",
    "/batch-register.html": "/users",
}
_JOB_PAGES = ("/job-detail.html", "/job-events.html", "/job-retry.html", "/task-attempt.html")


async def old_job(request: Request) -> Response:
    """The page of one job."""
    query = request.query_params
    user, name = query.get("username", ""), query.get("jobName", "")
    return _to(f"/jobs/{quote(f'{user}~{name}', safe='')}" if user and name else "/jobs")


async def old_node(request: Request) -> Response:
    """The page of one node. OpenPAI adds the port of its exporter."""
    name = request.query_params.get("instance", "").partition(":")[0]
    return _to(f"/nodes/{quote(name, safe='')}" if name else "/nodes")


def _page(path: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        del request
        return _to(path)

    return answer


def _to(path: str) -> Response:
    """Paths of our own only."""
    return RedirectResponse(path, 302)


ROUTES = (
    *(Route(path, old_job, methods=["GET"]) for path in _JOB_PAGES),
    Route("/cluster-view/hardware/detail.html", old_node, methods=["GET"]),
    *(Route(path, _page(target), methods=["GET"]) for path, target in PAGES.items()),
)
