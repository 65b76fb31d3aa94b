"""Rights that end in the middle of something: removed users and former members, on each route, within two seconds."""

from __future__ import annotations

import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pai_install.console.caller import CallerKind
from pai_install.console.server import create_app
from pai_install.console.services import ConsoleServices
from pai_install.console.sign_in.sessions import COOKIE
from pai_install.console.streams import MAX_OF_CALLER
from pai_install.users.objects import account, membership
from tests.integration.console.conftest import HOST, PASSWORDS, Console, console, own, users
from tests.integration.console.test_floods import memory
from tests.integration.console.test_jobs import FILE, JOBS, Served, served
from tests.integration.console.test_web_pages import listening
from tests.integration.control_plane import Api, Json
from tests.integration.users.conftest import Users
from tests.integration.users.test_rights import job, template
from tests.stopwatch import Stopwatch
from tests.waiting import until

__all__ = ["console", "own", "served", "users"]
MERGE = "application/merge-patch+json"
IN_TIME_S = 2.0
_SPACE = "/api/v1/namespaces"


class Kubelet(BaseHTTPRequestHandler):
    """Logs of any container: one line with its place, and with follow=true nothing more until the reader goes."""

    protocol_version = "HTTP/1.1"
    readers = 0

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._part(f"log of {self.path.partition('?')[0].removeprefix('/containerLogs/')}\n")
        if "/hostile-0/" in self.path:
            with suppress(OSError):
                for _ in range(400):
                    self._part("x" * 2**20)
        elif "follow=true" in self.path:
            Kubelet.readers += 1
            self.connection.settimeout(60)
            with suppress(OSError):
                self.connection.recv(1)
            Kubelet.readers -= 1
            self.close_connection = True
        else:
            self._part("")

    def _part(self, text: str) -> None:
        self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())
        self.wfile.flush()

    def log_message(self, *_words: Any) -> None:
        pass


@pytest.fixture(scope="module")
def kubelet(users: Users) -> Iterator[None]:
    """A node whose kubelet is ours."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Kubelet)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    folder: Path = users.admin.folder / "certificates"
    context.load_cert_chain(folder / "apiserver.crt", folder / "apiserver.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-01"}}
    assert users.admin.create(node) == ""
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": server.server_port}},
    }
    users.admin.ask("PATCH", "/api/v1/nodes/gpu-01/status", {"status": status}, MERGE)
    yield
    server.shutdown()


class Site:
    """The console as a program on a port, with a job of each user whose pod runs."""

    def __init__(self, services: ConsoleServices, console: Console, users: Users) -> None:
        self.services, self.console, self.admin = services, console, users.admin
        self.web = httpx2.Client(
            base_url=f"http://127.0.0.1:{listening(create_app(console.settings, services))}",
            headers={"Host": HOST},
            trust_env=False,
            timeout=30,
        )

    def token(self, user: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.console.token(user, PASSWORDS[user])}"}

    def cookie(self, user: str) -> dict[str, str]:
        sign_in = self.console.sign_in
        session = sign_in.sessions.open(sign_in.users.caller(user, CallerKind.PASSWORD))
        return {"Cookie": f"{COOKIE}={session}"}

    def run(self, user: str, name: str, space: str) -> None:
        """A job whose pod stands as a controller and a kubelet would leave it."""
        if space != "vision":
            made = job("jobs.batch", name, user, template(user))
            assert self.admin.create({**made, "metadata": {**made["metadata"], "namespace": space}}) == ""
            return self.pod(user, name, space)
        file = FILE.replace("name: train", f"name: {name}").replace("  parallelism: 2\n  completions: 2\n", "")
        headers = {**self.token(user), "Content-Type": "text/yaml"}
        answer = self.web.post(JOBS, content=file.replace("  completionMode: Indexed\n", ""), headers=headers)
        assert answer.status_code == 202, answer.text
        return self.pod(user, name, space)

    def pod(self, user: str, name: str, space: str) -> None:
        made = self.admin.ask("GET", f"/apis/batch/v1/namespaces/{space}/jobs/{name}")
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "controller": True}
        labels = made["spec"]["template"]["metadata"]["labels"]
        metadata: Json = {"name": f"{name}-0", "namespace": space, "labels": labels}
        metadata["ownerReferences"] = [{**owner, "uid": made["metadata"]["uid"]}]
        spec = {"containers": [{"name": "main", "image": "none"}], "nodeName": "gpu-01"}
        assert self.admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}) == ""
        container = {"name": "main", "state": {"running": {}}, "ready": True, "restartCount": 0, "image": "a"}
        status = {"phase": "Running", "containerStatuses": [{**container, "imageID": "a"}]}
        self.admin.ask("PATCH", f"{_SPACE}/{space}/pods/{name}-0/status", {"status": status}, MERGE)
        until(lambda: any(one.job.instances for one in self.services.model.jobs.find(user, name, None)), 60)

    def address(self, headers: dict[str, str], name: str) -> str:
        """The signed address of a log."""
        answer = self.web.get(self.locations(headers, name), headers=headers)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["locations"][0]["uri"])

    def role(self, headers: dict[str, str], name: str) -> str:
        answer = self.web.get(f"{JOBS}/{name}", headers=headers)
        assert answer.status_code == 200, answer.text
        (role,) = answer.json()["taskRoles"]
        return str(role)

    def locations(self, headers: dict[str, str], name: str) -> str:
        return f"{JOBS}/{name}/attempts/0/taskRoles/{self.role(headers, name)}/taskIndex/0/attempts/0/logs"

    @contextmanager
    def stream(self, address: str, headers: dict[str, str] | None = None) -> Iterator[Iterator[str]]:
        with self.web.stream("GET", address, headers=headers or {}) as answer:
            assert answer.status_code == 200
            yield answer.iter_lines()


@pytest.fixture(scope="module")
def site(served: Served, console: Console, users: Users, kubelet: None) -> Site:
    services, _ = served
    found = Site(services, console, users)
    for user, space in (("alice", "vision"), ("bob", "vision"), ("carol", "speech")):
        found.run(user, f"of-{user}", space)
    return found


@pytest.mark.parametrize("name", ["of-alice%2500", "of-alice%252Flog", "%252e%252e", "of%20alice", "of-alice%3Fwatch"])
def test_a_name_that_no_object_has_is_an_unknown_job(site: Site, name: str) -> None:
    token, cookie = site.token("alice"), site.cookie("alice")
    assert site.web.get(f"{JOBS}/alice~{name}", headers=token).status_code == 404
    assert site.web.get(f"/jobs/alice~{name}", headers=cookie).status_code == 404


def test_a_hostile_kubelet_does_not_fill_the_memory(site: Site) -> None:
    """Nor does a member whose program prints a line without an end."""
    site.run("alice", "hostile", "vision")
    address, before = site.address(site.token("alice"), "alice~hostile"), memory()
    answer = site.web.get(address)
    assert answer.status_code >= 400, len(answer.text)
    with site.stream(f"{address}&follow=true") as lines:
        assert next(lines).startswith("data: log of")
        time.sleep(3)  # a slow reader
        assert memory() - before < 160 * 2**20
    assert site.web.get("/login").status_code == 200


def leave(admin: Api, user: str) -> None:
    admin.ask("DELETE", f"/apis/rbac.authorization.k8s.io/v1/namespaces/vision/rolebindings/pai-user-{user}")


def remove(admin: Api, user: str) -> None:
    admin.ask("DELETE", f"{_SPACE}/pai-users/serviceaccounts/{user}")


def test_an_address_is_of_one_pod_and_one_user(site: Site) -> None:
    alice, carol = site.token("alice"), site.token("carol")
    address = site.address(alice, "alice~of-alice")
    assert site.web.get(address).text == "log of vision/of-alice-0/main\n"
    assert "/main" in site.web.get(site.address(alice, "bob~of-bob")).text, "members of a group read each other's logs"
    place = site.locations(carol, "carol~of-carol")
    assert site.web.get(place, headers=alice).status_code == 404
    assert site.web.get(site.address(carol, "carol~of-carol")).text == "log of speech/of-carol-0/main\n"


def test_an_address_of_a_pod_that_was_made_again(site: Site) -> None:
    """It gives no more than its user has: the pod of the same name is in the same group."""
    alice = site.token("alice")
    address = site.address(alice, "alice~of-alice")
    site.admin.ask("DELETE", f"{_SPACE}/vision/pods/of-alice-0?gracePeriodSeconds=0")
    assert site.web.get(address).status_code == 404
    site.pod("alice", "of-alice", "vision")
    assert site.web.get(address).text == "log of vision/of-alice-0/main\n"


def test_followers_of_a_silent_log_end_with_their_readers(site: Site) -> None:
    """Otherwise reading pages again would use up the streams of a user, and of all."""
    address = f"{site.address(site.token('alice'), 'alice~of-alice')}&follow=true"
    for _ in range(MAX_OF_CALLER + 4):
        with site.stream(address) as lines:
            assert next(lines) == "data: log of vision/of-alice-0/main"
    until(lambda: site.services.streams.open == 0, 60)
    until(lambda: Kubelet.readers == 0, 60)


@pytest.mark.parametrize(("user", "end"), [("alice", leave), ("bob", remove)])
def test_all_routes_end_within_two_seconds(site: Site, user: str, end: Callable[[Api, str], None]) -> None:
    token, cookie, named = site.token(user), site.cookie(user), f"{user}~of-{user}"
    address = site.address(token, named)
    pages = (f"/jobs/{named}", f"/jobs/{named}/log/{site.role(token, named)}/0", f"/jobs/{named}/edit")
    apis = (f"{JOBS}/{named}", f"{JOBS}/{named}/config", f"{JOBS}/{named}/events")
    for path in pages[:2]:
        assert site.web.get(path, headers=cookie).status_code == 200, path
    for path in apis:
        assert site.web.get(path, headers=token).status_code == 200, path
    assert [one["name"] for one in site.web.get(JOBS, headers=token).json() if one["username"] == user]
    with (
        site.stream(f"{address}&follow=true") as log,
        site.stream(f"/jobs/{named}/changes", cookie) as changes,
    ):
        assert next(log).startswith("data: log of vision/")
        assert next(changes).startswith("data: ")
        watch = Stopwatch()
        end(site.admin, user)
        rest = [*log]
        assert watch.within(IN_TIME_S), "the followed log goes on"
        assert not any(rest), "the log is not at its end"
        assert not [line for line in changes if re.match(r"data: (?!gone)", line)]
        assert watch.within(IN_TIME_S), "the changes of the job go on"
    time.sleep(max(0.0, watch.limit(IN_TIME_S, watch.seconds) - watch.seconds))
    assert site.web.get(address).status_code in (401, 403)
    found = {path: site.web.get(path, headers=token).status_code for path in apis}
    assert set(found.values()) <= {401, 403, 404}, found
    shown = {path: site.web.get(path, headers=cookie).status_code for path in pages}
    assert set(shown.values()) <= {303, 401, 403, 404}, shown
    listed = site.web.get(JOBS, headers=token)
    assert listed.status_code == 401 or listed.json() == []
    assert f"of-{user}" not in site.web.get("/jobs", headers=cookie).text
    stop = site.web.put(f"{JOBS}/{named}/executionType", json={"value": "STOP"}, headers=token)
    assert stop.status_code in (401, 403, 404), stop.text


def test_a_member_again_has_the_rights_again(site: Site) -> None:
    """A lost right is not remembered."""
    site.admin.apply(membership("alice", "vision", "vision"))
    token = site.token("alice")
    until(lambda: site.web.get(f"{JOBS}/alice~of-alice", headers=token).status_code == 200, 60)


def test_a_new_user_of_the_same_name_has_no_address_of_the_former_one(site: Site) -> None:
    address = site.address(site.token("alice"), "alice~of-alice")
    former = site.console.sign_in.users.uid("alice")
    remove(site.admin, "alice")
    site.admin.apply(account("alice"))
    site.admin.apply(membership("alice", "vision", "vision"))
    until(lambda: site.console.sign_in.users.uid("alice") not in ("", former), 60)
    assert site.web.get(address).status_code == 401
