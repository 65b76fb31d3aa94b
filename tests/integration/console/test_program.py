"""The program of the console as the add-on starts it: TLS, its own account with its own rights, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from pai_install.app.users import password_link
from pai_install.profile.project import profile_of
from pai_install.profile.publish import profile_object
from pai_install.schedulers.last_applied import kept_object
from pai_install.users.console_rights import NAME, NAMESPACE, console_objects
from tests.examples import site_of
from tests.integration.clients import http_client
from tests.integration.control_plane import Json
from tests.integration.shared_control_plane import wait_for_rights
from tests.integration.users.conftest import NAMESPACES, Users
from tests.internet.authority import Authority
from tests.ports import free_ports
from tests.waiting import until


@dataclass(frozen=True)
class Program:
    port: int
    metrics_port: int
    authority: Path
    log: Path
    web_port: int = 0
    pid: int = 0

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None, port: int = 0
    ) -> tuple[int, str]:
        """Status and body. port: 0 for that of the console."""
        context = ssl.create_default_context(cafile=str(self.authority))
        url = f"https://localhost:{port or self.port}{path}"
        request = urllib.request.Request(url, body, headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20, context=context) as answer:  # noqa: S310 # ours
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@pytest.fixture(scope="module")
def program(users: Users, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder, (port, metrics_port, web_port) = tmp_path_factory.mktemp("program"), free_ports(3)
    profile = profile_of(site_of("default"))
    spaces = (*NAMESPACES, *(group.namespace for group in profile.groups))
    rights = console_objects("kueue", spaces, "1.36.3")
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}} for space in spaces]
    for entry in (*namespaces, *rights, profile_object(profile), kept_object(profile.require_scheduling())):
        users.admin.apply(entry)
    wait_for_rights(users.admin)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = users.admin.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAME}/token", body)
    (folder / "token").write_text(token["status"]["token"])
    (folder / "signing.key").write_text("00" * 32)
    authority = Authority("console", folder)
    authority.serve(["localhost"])
    (folder / "ca.pem").write_text(authority.pem)
    settings: Json = {
        "names": ["localhost"],
        "host": "127.0.0.1",
        "port": port,
        "metrics_port": metrics_port,
        "http_port": None,
        "web_pages": {"port": web_port, "network": "127.0.0.0/8"},
        "certificate": str(folder / "localhost.pem"),
        "key": str(folder / "localhost.pem"),
        "signing_key": str(folder / "signing.key"),
        "api_server": f"https://127.0.0.1:{users.admin.port}",
        "api_authority": str(users.admin.authority),
        "api_token": str(folder / "token"),
    }
    (folder / "console.json").write_text(json.dumps(settings))
    words = [sys.executable, "-m", "pai_install.console", "--settings", str(folder / "console.json")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, env=environment)
    try:
        made = Program(port, metrics_port, folder / "ca.pem", folder / "log", web_port, process.pid)
        end = time.monotonic() + 90
        while True:
            try:
                assert made.ask("GET", "/healthz")[0] == 200
                break
            except OSError:
                assert process.poll() is None, made.log.read_text()
                assert time.monotonic() < end, made.log.read_text()
                time.sleep(0.3)
        yield made
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def test_a_user_sets_a_password_and_signs_in(program: Program, users: Users) -> None:
    origin = f"https://localhost:{program.port}"
    link = password_link(http_client(users.admin), "alice", origin, timedelta(hours=1))
    status, page = program.ask("GET", link.url.removeprefix(origin))
    assert (status, "alice" in page) == (200, True)
    login = "/rest-server/api/v2/authn/basic/login"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    status, text = program.ask("POST", login, b"username=alice&password=wrong+password", form)
    assert (status, json.loads(text)["code"]) == (400, "IncorrectPasswordError")
    status, text = program.ask("POST", login, b"username=&password=", form)
    assert (status, json.loads(text)["code"]) == (400, "InvalidParametersError")


def test_a_kubeconfig_counts_in_the_api(program: Program, users: Users) -> None:
    token = users.tokens["alice"]["status"]["token"]
    headers = {"Authorization": f"Bearer {token}"}
    until(lambda: program.ask("GET", "/rest-server/api/v2/user/alice", headers=headers)[0] == 200)
    assert program.ask("GET", "/rest-server/api/v2/users", headers=headers)[0] == 403


def test_web_pages_have_a_port_of_their_own(program: Program) -> None:
    for path in ("/open/alice~note/", "/login", "/rest-server/api/v2/info", "/healthz"):
        assert program.ask("GET", path, port=program.web_port)[0] == 403
    status, _ = program.ask("GET", "/open/alice~note/", headers={"Upgrade": "websocket"}, port=program.web_port)
    assert status == 403
    assert program.ask("GET", "/open/alice~note/")[0] == 404


def test_numbers_for_prometheus(program: Program) -> None:
    program.ask("GET", "/rest-server/api/v2/no-such")
    with urllib.request.urlopen(f"http://127.0.0.1:{program.metrics_port}/metrics", timeout=20) as answer:
        rows = [line.rpartition(" ") for line in answer.read().decode().splitlines() if not line.startswith("#")]
    found = {name: float(value) for name, _, value in rows}
    assert found['pai_console_requests_total{part="page",method="GET",code="200"}'] > 0
    assert found['pai_console_requests_total{part="api",method="GET",code="404"}'] == 1
    assert found['pai_console_request_duration_seconds_count{part="api"}'] >= 1
    assert (found["pai_console_streams"], found["pai_console_sessions"]) == (0, 0)
    assert program.ask("GET", "/metrics")[0] == 404


def test_its_rights_are_enough_and_its_log_has_no_secret(program: Program, users: Users) -> None:
    time.sleep(2)
    text = program.log.read_text()
    assert "forbidden" not in text.lower()
    assert "cannot" not in text
    assert users.tokens["alice"]["status"]["token"] not in text
    assert "Traceback" not in text
