"""A console with web pages of jobs, and a program in a pod: real servers with WebSockets."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.sync.client import ClientConnection, connect

from pai_install.console.caller import CallerKind
from pai_install.console.server import create_app
from pai_install.console.services import ConsoleServices
from pai_install.console.settings import ConsoleSettings, WebPagesSettings
from pai_install.console.sign_in.service import SignInService, open_sign_in
from pai_install.console.sign_in.sessions import COOKIE
from pai_install.console.slow_requests import PromptProtocol
from pai_install.console.web_pages.access import COOKIE as PAGE_COOKIE
from pai_install.console.web_pages.app import create_web_pages
from pai_install.console.web_pages.socket_relay import MOST_MESSAGE
from pai_install.kube.model import Ref
from pai_install.users.model import MEMBER, NAMESPACE
from tests.unit.console.conftest import eventually
from tests.unit.console.live import LiveClients, LiveCluster

PORT = 8444
HOST = f"testserver:{PORT}"
ORIGIN = f"https://{HOST}"


@dataclass
class Program:
    """What runs in the pod. seen: requests. closed: WebSockets that ended. ended: endless answers that did.
    answers: headers that it adds.
    """

    seen: list[dict[str, Any]] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    ended: int = 0
    answers: list[tuple[str, str]] = field(default_factory=list)

    def app(self) -> Starlette:
        methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        return Starlette(
            routes=[
                WebSocketRoute("/{path:path}", self._echo),
                Route("/{path:path}", self._answer, methods=methods),
            ]
        )

    async def _answer(self, request: Request) -> Response:
        body = await request.body()
        self.seen.append(
            {
                "method": request.method,
                "path": request.scope["raw_path"].decode(),
                "query": request.scope["query_string"].decode(),
                "headers": [(name.decode(), value.decode()) for name, value in request.headers.raw],
                "body": body,
            }
        )
        if request.path_params["path"].endswith("endless"):
            return StreamingResponse(self._endless(), media_type="text/event-stream")
        if request.path_params["path"].endswith("large"):
            return StreamingResponse(_large(), media_type="application/octet-stream")
        answer = JSONResponse({"page": "of the job"})
        for name, value in self.answers:
            answer.headers.append(name, value)
        return answer

    async def _endless(self) -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"data: more\n\n"
                await asyncio.sleep(0.05)
        finally:
            self.ended += 1

    async def _echo(self, socket: WebSocket) -> None:
        self.seen.append({"path": socket.url.path, "headers": socket.headers.items()})
        await socket.accept(subprotocol=(socket.scope["subprotocols"] or [None])[-1])
        try:
            while True:
                message = await socket.receive()
                if message["type"] == "websocket.disconnect":
                    break
                if message.get("text") == "close":
                    await socket.close(4321)
                    break
                if message.get("text") == "ping me":
                    await socket.send_text(json.dumps({"pong": True}))
                elif message.get("bytes") is not None:
                    await socket.send_bytes(message["bytes"])
                else:
                    await socket.send_text(message["text"])
        except WebSocketDisconnect:
            pass
        finally:
            self.closed.append(1)


async def _large() -> AsyncIterator[bytes]:
    for _ in range(200):
        yield b"x" * 65536


@dataclass
class Site:
    """console: of the site. program: in alice's job `note`. port: of the proxy."""

    kubernetes: LiveCluster
    services: ConsoleServices
    sign_in: SignInService
    console: Callable[[], TestClient]
    program: Program
    port: int

    def session(self, user: str) -> str:
        """The cookie of a session."""
        return self.sign_in.sessions.open(self.sign_in.users.caller(user, CallerKind.PASSWORD))

    def opened(self, user: str = "alice", job: str = "alice~note", session: str = "") -> str:
        """The header Cookie of a browser that opened a web page from the console."""
        session = session or self.session(user)
        answer = self.open(session, job)
        assert answer.status_code == 303, answer.text
        page = answer.cookies[PAGE_COOKIE]
        return f"{COOKIE}={session}; {PAGE_COOKIE}={page}"

    def open(self, session: str, job: str = "alice~note", site: str = "same-origin") -> httpx2.Response:
        """The answer of the console to the link on the page of a job."""
        headers = {"Cookie": f"{COOKIE}={session}", **({"Sec-Fetch-Site": site} if site else {})}
        return self.console().get(f"/jobs/{job}/open", headers=headers)

    def ask(self, path: str, cookie: str = "", method: str = "GET", **words: Any) -> httpx2.Response:
        """A request to the port of web pages."""
        headers = {"Host": HOST, **({"Cookie": cookie} if cookie else {}), **words.pop("headers", {})}
        url = f"http://127.0.0.1:{self.port}{path}"
        return httpx2.request(method, url, headers=headers, timeout=20, trust_env=False, **words)

    def socket(self, path: str, cookie: str, origin: str | None = ORIGIN, **words: Any) -> ClientConnection:
        """A WebSocket to the port of web pages."""
        return connect(
            f"ws://{HOST}{path}",
            sock=socket.create_connection(("127.0.0.1", self.port)),
            origin=origin,  # type: ignore[arg-type] # a text
            additional_headers={"Cookie": cookie},
            proxy=None,
            max_size=None,
            **words,
        )


def account(user: str) -> dict[str, Any]:
    """The account of a user."""
    labels = {"pai-install/user": user}
    metadata = {"name": user, "namespace": NAMESPACE, "labels": labels, "uid": f"uid-{user}"}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def member(user: str, group: str, namespace: str) -> dict[str, Any]:
    """The membership of a user."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {
            "name": f"pai-{user}",
            "namespace": namespace,
            "labels": {"pai-install/user": user},
            "annotations": {"pai-install/group": group},
        },
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": MEMBER},
        "subjects": [{"kind": "ServiceAccount", "name": user, "namespace": NAMESPACE}],
    }


def page_job(
    user: str, name: str, port: int, address: str = "127.0.0.1", label: str = "pai-install/web-port"
) -> list[dict[str, Any]]:
    """A job with a web page, or another port for its owner, and its pod."""
    marks = {"pai-install/user": user, "pai-install/group": "Vision_1", "pai-install/job": name}
    labels = {**marks, label: str(port), "batch.kubernetes.io/job-name": name, "job-name": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main"}]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "vision-1", "labels": marks, "uid": f"uid-{name}"},
        "spec": {"template": template, "completions": 1, "parallelism": 1},
    }
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "controller": True, "uid": f"uid-{name}"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-0", "namespace": "vision-1", "labels": labels, "ownerReferences": [owner]},
        "spec": {"nodeName": "gpu-01", "containers": [{"name": "main"}]},
        "status": {"phase": "Running", "podIP": address, "containerStatuses": [{"name": "main", "ready": True}]},
    }
    return [job, pod]


@pytest.fixture
def serve() -> Iterator[Callable[[ASGIApp], int]]:
    """Starts servers as the console does."""
    servers: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(app: ASGIApp) -> int:
        config = uvicorn.Config(
            app, port=0, http=PromptProtocol, ws="websockets-sansio", ws_max_size=MOST_MESSAGE, log_config=None,
            ws_per_message_deflate=False, lifespan="off", access_log=False, timeout_graceful_shutdown=1,
            log_level="warning",
        )  # fmt: skip
        server = uvicorn.Server(config)
        listener = socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
        thread.start()
        servers.append((server, thread))
        return int(listener.getsockname()[1])

    yield start
    for server, _ in servers:
        server.should_exit = True
    for _, thread in servers:
        thread.join(10)


@pytest.fixture
def site(
    settings: ConsoleSettings, kubernetes: LiveCluster, clients: LiveClients, serve: Callable[[ASGIApp], int]
) -> Iterator[Site]:
    """alice and carol are of Vision_1, bob of nlp. alice's job `note` has a web page."""
    pages = WebPagesSettings(port=PORT, network="127.0.0.0/8")
    settings = settings.model_copy(update={"web_pages": pages})
    for user in ("alice", "bob", "carol"):
        kubernetes.put(account(user))
    for user, group, space in (("alice", "Vision_1", "vision-1"), ("carol", "Vision_1", "vision-1")):
        kubernetes.put(member(user, group, space))
    kubernetes.put(member("bob", "nlp", "nlp"))
    sign_in = open_sign_in(settings, clients)
    sign_in.users.start()
    services = ConsoleServices(
        settings, clients, (sign_in.tokens,), page_authenticators=(sign_in.cookies,), sign_in=sign_in
    )
    services.model.load()
    eventually(lambda: services.model.is_ready and sign_in.users.is_known)
    program = Program()
    kubernetes.put(*page_job("alice", "note", serve(program.app())))
    eventually(lambda: bool(services.model.jobs.find("alice", "note", None)))

    def console() -> TestClient:
        app = create_app(settings, services)
        return TestClient(app, base_url="https://testserver", follow_redirects=False)

    yield Site(kubernetes, services, sign_in, console, program, serve(create_web_pages(settings, services, pages)))
    services.model.stop()
    sign_in.users.stop()


def removed(site: Site, user: str) -> None:
    """As `user remove`."""
    site.kubernetes.delete([Ref("serviceaccount", user, NAMESPACE)])


__all__ = ["HOST", "ORIGIN", "Program", "Site", "page_job", "removed"]
