"""All pages of people with a session, and their style."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from pai_install.console.pages import (
    account,
    health,
    home,
    jobs,
    live,
    new_job,
    nodes,
    runs,
    storages,
    system_services,
    templates,
    users,
    virtual_clusters,
)
from pai_install.console.pages.rendering import FOLDER
from pai_install.console.services import ConsoleServices

# the first route that fits an address counts
_CLUSTER = (virtual_clusters, nodes, health, system_services, runs)
_SUBJECTS = (home, new_job, templates, live, jobs, *_CLUSTER, users, storages, account)


def page_routes(services: ConsoleServices) -> Iterator[Route]:
    """Yields the routes."""
    for subject in _SUBJECTS:
        yield from subject.routes(services)
    yield Route("/console.css", _style, methods=["GET"])


async def _style(request: Request) -> Response:
    del request
    return FileResponse(FOLDER / "console.css", media_type="text/css")
