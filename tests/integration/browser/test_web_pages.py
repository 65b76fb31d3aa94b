"""A hostile web page of a job in Chromium: it shares the host with the console, and learns and changes nothing."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp

from pai_install.console.server import create_app
from pai_install.console.services import ConsoleServices
from pai_install.console.settings import ConsoleSettings, WebPagesSettings
from pai_install.console.sign_in.pages import SignInPages
from pai_install.console.sign_in.service import open_sign_in
from pai_install.console.slow_requests import PromptProtocol
from pai_install.console.web_pages.app import create_web_pages
from tests.integration.browser.driver import driven
from tests.internet.authority import Authority
from tests.ports import free_port
from tests.unit.console.conftest import ROLES, eventually, kubernetes
from tests.unit.console.live import LiveClients, LiveCluster
from tests.unit.console.web_pages.conftest import Program, account, member, page_job

__all__ = ["kubernetes"]
PASSWORD = "a password of alice"


class Hostile(Program):
    """A page in which the browser runs what it is told to."""

    async def _answer(self, request: Any) -> Response:
        answer = await super()._answer(request)
        if request.method == "GET" and request.url.path.endswith("/"):
            return HTMLResponse("<!doctype html><title>lab</title><body>the page of the job</body>")
        return answer


def listening(app: ASGIApp, port: int, certificate: str = "") -> int:
    """The port of a server that ends with the tests."""
    config = uvicorn.Config(
        app, http=PromptProtocol, ws="websockets-sansio", log_config=None, lifespan="off", access_log=False,
        log_level="warning", ssl_certfile=certificate or None, ssl_keyfile=certificate or None,
    )  # fmt: skip
    listener = socket.create_server(("127.0.0.1", port))
    server = uvicorn.Server(config)
    threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True).start()
    return int(listener.getsockname()[1])


@pytest.fixture
def seen(kubernetes: LiveCluster, tmp_path: Path) -> Any:
    """What the browser found."""
    (tmp_path / "key").write_bytes(b"k" * 32)
    port, pages = free_port(), WebPagesSettings(port=free_port(), network="127.0.0.0/8")
    settings = ConsoleSettings(
        names=("localhost",), port=port, web_pages=pages, signing_key=tmp_path / "key", api_server="https://api:6443",
        api_authority=tmp_path / "key", api_token=tmp_path / "key",
    )  # fmt: skip
    clients = LiveClients(kubernetes, ROLES)
    kubernetes.put(account("alice"), member("alice", "Vision_1", "vision-1"))
    sign_in = open_sign_in(settings, clients)
    sign_in.users.start()
    sign_in.passwords.write("alice", "uid-alice", PASSWORD)
    services = ConsoleServices(
        settings, clients, (sign_in.tokens,), page_routes=SignInPages(sign_in).routes(),
        page_authenticators=(sign_in.cookies,), sign_in=sign_in,
    )  # fmt: skip
    services.model.load()
    eventually(lambda: services.model.is_ready and sign_in.users.is_known)
    program = listening(Hostile().app(), 0)
    kubernetes.put(*page_job("alice", "note", program), *page_job("alice", "other", program))
    eventually(lambda: bool(services.model.jobs.find("alice", "other", None)))
    authority = Authority("console", tmp_path)
    authority.serve(["localhost"])
    certificate = str(tmp_path / "localhost.pem")
    listening(create_app(settings, services), port, certificate)
    listening(create_web_pages(settings, services, pages), pages.port, certificate)
    given = {"console": f"https://localhost:{port}", "password": PASSWORD, "other": "alice~other"}
    try:
        found = driven("web_pages.js", given, tmp_path)
    finally:
        services.model.stop()
        sign_in.users.stop()
    return {**found, "pages": f"https://localhost:{pages.port}", "kubernetes": kubernetes}


def test_a_hostile_page_learns_and_changes_nothing(seen: Any) -> None:
    assert (seen["at"], seen["text"]) == (f"{seen['pages']}/open/alice~note/", "the page of the job")
    attack = seen["attack"]
    assert attack["echo"] == '{"pong": true}', "its own WebSocket works"
    assert attack["cookies"] == ""
    # CORS, and Cross-Origin-Resource-Policy
    assert (attack["read"], attack["opaque"]) == ("TypeError", "TypeError")
    # the API takes no cookie, and answers no page that sends one
    assert attack["api"] == "TypeError"
    assert attack["open"] == "TypeError"
    assert attack["other"] == "403"
    assert seen["paths"] == ["/open/alice~note/"], "it opened no other web page"
    assert attack["worker"] == "TypeError"
    assert seen["kept"], "the session of the console is the same"
    assert seen["planted"] == ["__Host-pai"], "the name that the session had before"
    assert seen["form"] == 403
    assert any(ref.name == "note" and ref.kind == "job" for ref in seen["kubernetes"].objects)
    assert seen["handle"] is True, "it has no hold of a window of the console"
    assert "chrome-error" in seen["frame"]
