"""The web application: OpenPAI's API below /rest-server, pages at the root."""

from __future__ import annotations

import logging
import re

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount

from pai_install.console.endpoint import error_response
from pai_install.console.errors import no_api, unknown
from pai_install.console.guards import RequestGuard
from pai_install.console.pages.all_pages import page_routes
from pai_install.console.routes import (
    absent,
    groups,
    info,
    job_changes,
    job_events,
    jobs,
    kubernetes,
    logs,
    old_pages,
    prometheus,
    storages,
    virtual_clusters,
)
from pai_install.console.services import ConsoleServices
from pai_install.console.settings import ConsoleSettings

PREFIX = "/rest-server"
ROUTES = tuple(
    route
    for subject in (jobs, job_changes, job_events, logs, virtual_clusters, storages, groups, kubernetes)
    for route in subject.ROUTES
)
_LOG = logging.getLogger("pai_install.console")
# parts of an address that may be a token, or the secret of a link
_SECRET = re.compile(r"[^/]{32,}")


def create_api(services: ConsoleServices) -> Starlette:
    """OpenPAI's API without a prefix, as on its own port. Every answer is JSON, errors too."""
    routes = [info.HEALTH, logs.READ, *info.ROUTES, *ROUTES, *services.api_routes]
    api = Starlette(
        routes=routes,
        exception_handlers={HTTPException: _refused, Exception: _failed},
        middleware=[Middleware(RequestGuard, names=services.settings.names, api=True)],
    )
    # RequestGuard removes a closing slash, so that no client has to follow a redirect.
    api.router.redirect_slashes = False
    api.state.services = services
    return api


def create_app(settings: ConsoleSettings, services: ConsoleServices) -> Starlette:
    """The API and the pages."""
    app = Starlette(
        routes=[
            info.HEALTH,
            logs.READ,
            Mount(PREFIX, create_api(services)),
            *old_pages.ROUTES,
            *prometheus.ROUTES,
            *absent.ROUTES,
            *page_routes(services),
            *services.page_routes,
        ],
        exception_handlers={HTTPException: _no_page, Exception: _failed},
        middleware=[Middleware(RequestGuard, names=settings.names, prefix=PREFIX)],
    )
    app.router.redirect_slashes = False
    app.state.services = services
    return app


async def _refused(request: Request, error: Exception) -> Response:
    """An unknown address or method."""
    del error
    return error_response(no_api(request.url.path))


async def _failed(request: Request, error: Exception) -> Response:
    """Writes the cause to the log, not to the sender."""
    _LOG.error("%s %s failed", request.method, _SECRET.sub("***", request.url.path), exc_info=error)
    return error_response(unknown())


async def _no_page(request: Request, error: Exception) -> Response:
    del request
    status = error.status_code if isinstance(error, HTTPException) else 500
    return PlainTextResponse("no such page", status)
