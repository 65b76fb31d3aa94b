"""Web pages of jobs over the console on a real API server: rights, policies, and the watch of accounts are its own."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import httpx2
import pytest
import uvicorn
from starlette.testclient import TestClient
from starlette.types import ASGIApp
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from pai_install.console.caller import CallerKind
from pai_install.console.server import create_app
from pai_install.console.settings import WebPagesSettings
from pai_install.console.sign_in.sessions import COOKIE
from pai_install.console.slow_requests import PromptProtocol
from pai_install.console.web_pages.access import COOKIE as PAGE_COOKIE
from pai_install.console.web_pages.app import create_web_pages
from tests.integration.console.conftest import HOST, PASSWORDS, Console, console, own, users
from tests.integration.console.test_jobs import JOBS, Served, served
from tests.integration.users.conftest import Users
from tests.stopwatch import Stopwatch
from tests.unit.console.web_pages.conftest import Program
from tests.waiting import until

__all__ = ["console", "own", "served", "users"]
PORT = 8444
FILE = """\
apiVersion: batch/v1
kind: Job
metadata: {{name: note}}
spec:
  template:
    metadata: {{labels: {{pai-install/web-port: "{port}"}}}}
    spec:
      restartPolicy: Never
      containers:
        - {{name: main, image: example.com/lab:1, resources: {{requests: {{cpu: 1}}, limits: {{cpu: 1, memory: 1Gi}}}}}}
"""
PAGE = "/open/alice~note/"


class Pages:
    """The console, and its port of web pages."""

    def __init__(self, console: Console, web: Callable[[], TestClient], port: int, program: Program) -> None:
        self.console, self.web, self.port, self.program = console, web, port, program

    def session(self, name: str) -> str:
        sign_in = self.console.sign_in
        return sign_in.sessions.open(sign_in.users.caller(name, CallerKind.PASSWORD))

    def open(self, session: str) -> httpx2.Response:
        headers = {"Cookie": f"{COOKIE}={session}", "Sec-Fetch-Site": "same-origin"}
        return self.web().get("/jobs/alice~note/open", headers=headers)

    def cookie(self) -> str:
        """Of the owner."""
        session = self.session("alice")
        answer = self.open(session)
        assert answer.status_code == 303, answer.text
        return f"{COOKIE}={session}; {PAGE_COOKIE}={answer.cookies[PAGE_COOKIE]}"

    def ask(self, cookie: str) -> int:
        headers = {"Host": f"{HOST}:{PORT}", "Cookie": cookie}
        url = f"http://127.0.0.1:{self.port}{PAGE}"
        return httpx2.get(url, headers=headers, trust_env=False, timeout=60).status_code

    def socket(self, cookie: str) -> ClientConnection:
        there = socket.create_connection(("127.0.0.1", self.port))
        origin, headers = Origin(f"https://{HOST}:{PORT}"), {"Cookie": cookie}
        return connect(
            f"ws://{HOST}:{PORT}{PAGE}",
            sock=there,
            origin=origin,
            additional_headers=headers,
            proxy=None,
            open_timeout=60,
        )


def listening(app: ASGIApp) -> int:
    """The port of a server that ends with the tests."""
    config = uvicorn.Config(
        app, http=PromptProtocol, ws="websockets-sansio", log_config=None, lifespan="off", access_log=False
    )
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(config)
    threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True).start()
    return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def pages(served: Served, console: Console, users: Users) -> Pages:
    """alice's job has a web page. Its pod stands as a controller and a kubelet would leave it."""
    services, _ = served
    settings = console.settings.model_copy(
        update={"web_pages": WebPagesSettings(port=PORT, network="127.0.0.0/8"), "port": 443}
    )
    services = replace(services, settings=settings, page_authenticators=(console.sign_in.cookies,))
    program = Program()
    port = listening(program.app())
    web = TestClient(create_app(settings, services), base_url=f"https://{HOST}", follow_redirects=False)
    alice = {"Authorization": f"Bearer {console.token('alice', PASSWORDS['alice'])}", "Content-Type": "text/yaml"}
    answer = web.post(JOBS, content=FILE.format(port=port), headers=alice)
    assert answer.status_code == 202, answer.text
    job = users.admin.ask("GET", "/apis/batch/v1/namespaces/vision/jobs/note")
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert labels["pai-install/web-port"] == str(port)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "note", "uid": job["metadata"]["uid"], "controller": True}
    metadata = {"name": "note-0", "namespace": "vision", "labels": labels, "ownerReferences": [owner]}
    spec = {"containers": [{"name": "main", "image": "none"}], "nodeName": "gpu-01"}
    assert users.admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}) == ""
    status = {"status": {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}}
    path = "/api/v1/namespaces/vision/pods/note-0/status"
    users.admin.ask("PATCH", path, status, "application/merge-patch+json")
    until(lambda: any(one.job.instances for one in services.model.jobs.find("alice", "note", None)), 60)

    def fresh() -> TestClient:
        return TestClient(create_app(settings, services), base_url=f"https://{HOST}", follow_redirects=False)

    assert settings.web_pages is not None
    return Pages(console, fresh, listening(create_web_pages(settings, services, settings.web_pages)), program)


def test_the_owner_alone_opens_it(pages: Pages) -> None:
    cookie = pages.cookie()
    assert pages.ask(cookie) == 200
    with pages.socket(cookie) as there:
        there.send("ping me")
        assert there.recv(60) == '{"pong": true}'
    seen = len(pages.program.seen)
    # a colleague, who may read the job, and a member of another group
    for name, status in (("bob", 403), ("carol", 404)):
        session = pages.session(name)
        assert pages.open(session).status_code == status
        assert pages.ask(f"{COOKIE}={session}") == 403
    assert len(pages.program.seen) == seen


def test_a_removed_user_is_out_within_two_seconds(pages: Pages, users: Users) -> None:
    cookie = pages.cookie()
    with pages.socket(cookie) as there:
        there.send("ping me")
        there.recv(60)
        time.sleep(2)  # it goes on while the user exists
        there.send("ping me")
        there.recv(60)
        watch = Stopwatch()
        users.admin.ask("DELETE", "/api/v1/namespaces/pai-users/serviceaccounts/alice")
        with pytest.raises(ConnectionClosed):
            there.recv(60)
        assert watch.within(2)
    assert pages.ask(cookie) == 403
    with pytest.raises(InvalidStatus):
        pages.socket(cookie)
