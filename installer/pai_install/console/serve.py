"""Listens: HTTPS for everything, and HTTP for a redirect of browsers. Ends with the first server that ends."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import uvicorn
from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from pai_install.console.guards import host_name, in_url, origin
from pai_install.console.metrics import RequestCounter, create_metrics
from pai_install.console.server import PREFIX, create_api, create_app
from pai_install.console.services import ConsoleServices
from pai_install.console.settings import ConsoleSettings
from pai_install.console.slow_requests import PromptProtocol
from pai_install.console.web_pages.app import create_web_pages
from pai_install.console.web_pages.socket_relay import MOST_MESSAGE
from pai_install.errors import PaiError
from pai_install.users.credentials import CredentialKind

_MAX_HEADER = 16 * 1024
_IDLE_S = 75
_END_S = 10
_LOOPBACK = "127.0.0.1"


def create_redirect(settings: ConsoleSettings) -> Starlette:
    """Sends browsers to HTTPS. It serves no API: old clients would send passwords in plain text."""
    names = {name.lower(): name for name in settings.names}

    async def redirect(request: Request) -> Response:
        # The first name may be that of a lost control plane. A name of others is never a target.
        name = names.get(host_name(request.headers), settings.names[0])
        return RedirectResponse(f"{origin(in_url(name), settings.port)}/", 308)

    return Starlette(routes=[Route("/", redirect, methods=["GET"])])


class RefusalFilter(logging.Filter):
    """Drops an error that uvicorn logs for each refused WebSocket, which anyone could fill the log with."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line stays."""
        return record.getMessage() != "ASGI callable returned without completing handshake."


class _Server(uvicorn.Server):
    """A server that leaves signals to `_all`, since the process has several."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(settings: ConsoleSettings, services: ConsoleServices) -> None:
    """Listens on all ports until a signal."""
    logging.getLogger("uvicorn.error").addFilter(RefusalFilter())
    services.model.start()
    app = RequestCounter(create_app(settings, services), services.metrics, f"{PREFIX}/")
    api = RequestCounter(create_api(services), services.metrics, "")
    servers = [_server(settings, app, settings.port)]
    if settings.legacy_ports is not None:
        servers.append(_server(settings, api, settings.legacy_ports.rest_server))
        servers.append(_server(settings, app, settings.legacy_ports.webportal))
    if settings.web_pages is not None:
        pages = create_web_pages(settings, services, settings.web_pages)
        servers.append(_server(settings, pages, settings.web_pages.port, sockets=True))
    if settings.http_port is not None:
        servers.append(_server(settings, create_redirect(settings), settings.http_port, secure=False))
    if settings.metrics_port is not None:
        numbers = create_metrics(services.metrics, partial(_gauges, services))
        servers.append(_server(settings, numbers, settings.metrics_port, secure=False, host=_LOOPBACK))
    asyncio.run(_all(servers, settings.workers))


def _gauges(services: ConsoleServices) -> dict[str, int]:
    """Followed logs of this process, and sessions of all, if the cluster answers."""
    found = {"streams": services.streams.open}
    sign_in = services.sign_in
    try:
        return {**found, "sessions": len(sign_in.store.of_kind(CredentialKind.SESSION))} if sign_in else found
    except PaiError:
        return found


def _server(
    settings: ConsoleSettings, app: ASGIApp, port: int, *, secure: bool = True, sockets: bool = False, host: str = ""
) -> uvicorn.Server:
    tls = secure and settings.certificate is not None
    # uvicorn would write the query of each WebSocket to the log, which may have a secret
    config = uvicorn.Config(
        app,
        host=host or settings.host,
        port=port,
        ssl_certfile=settings.certificate if tls else None,
        ssl_keyfile=settings.key if tls else None,
        access_log=False,
        server_header=False,
        # Anybody may write X-Forwarded-For, and limits of rates go by the address.
        proxy_headers=False,
        h11_max_incomplete_event_size=_MAX_HEADER,
        timeout_keep_alive=_IDLE_S,
        # Followed logs never end by themselves, and would delay the end of the pod.
        timeout_graceful_shutdown=_END_S,
        http=PromptProtocol,
        ws="websockets-sansio" if sockets else "none",
        ws_max_size=MOST_MESSAGE,
        # A few compressed bytes may stand for megabytes.
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        log_level="warning",
    )
    return _Server(config)


async def _all(servers: list[uvicorn.Server], workers: int) -> None:
    """Serves on all ports. When one ends, by a signal or a port in use, all end."""

    def end() -> None:
        for server in servers:
            server.should_exit = True

    # Clients of the cluster block, so each request at work holds a thread.
    to_thread.current_default_thread_limiter().total_tokens = workers
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    tasks = [asyncio.create_task(server.serve()) for server in servers]
    # A console without one of its ports would look alive. Its pod starts again instead.
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    end()
    await asyncio.gather(*tasks)
