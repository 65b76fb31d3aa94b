"""Each route answers a person as the API server answers that person's own account. No route is left out."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Match, Mount, Route
from starlette.testclient import TestClient

from pai_install.console.caller import Caller, CallerKind
from pai_install.console.links import LogRequest
from pai_install.console.routes import absent, old_pages
from pai_install.console.routes.logs import PLACE
from pai_install.console.server import PREFIX, create_app
from pai_install.jobs.template import config_map_name
from tests.integration.console.conftest import HOST, PASSWORDS, Console, console, own, users
from tests.integration.console.rights_matrix import ELSEWHERE, KUBERNETES, OPERATIONS, PEOPLE, STARTS, Operation
from tests.integration.console.test_jobs import FILE, Served, served, until_listed
from tests.integration.console.test_pages import ORIGIN, form_of
from tests.integration.users.conftest import Users
from tests.integration.users.test_rights import asked
from tests.waiting import until

__all__ = ["console", "own", "served", "users"]
TESTS = Path(__file__).parents[2]
MERGE = "application/merge-patch+json"
NUMBERS = itertools.count()


@dataclass
class Matrix:
    """The console with what all cases share: a job of alice with a pod, and a template. new: a word of a case."""

    web: TestClient
    console: Console
    users: Users
    tokens: dict[str, str] = field(default_factory=dict)
    browsers: dict[str, TestClient] = field(default_factory=dict)
    shared: dict[str, str] = field(default_factory=dict)

    def token(self, person: str) -> dict[str, str]:
        if person and person not in self.tokens:
            self.tokens[person] = self.console.token(person, PASSWORDS[person])
        return {"Authorization": f"Bearer {self.tokens[person]}"} if person else {}

    def browser(self, person: str) -> TestClient:
        if person not in self.browsers:
            made = TestClient(self.web.app, base_url=f"https://{HOST}", follow_redirects=False)
            if person:
                fields = {"form": form_of(made.get("/login")), "from": "/", "username": person}
                body = {**fields, "password": PASSWORDS[person]}
                assert made.post("/login", data=body, headers=ORIGIN).status_code == 303
            self.browsers[person] = made
        return self.browsers[person]

    def api(self, person: str, method: str, path: str, **more: Any) -> Any:
        headers = {**self.token(person), **more.pop("headers", {})}
        return self.web.request(method, f"{PREFIX}{path}", headers=headers, **more)

    def submitted(self, name: str) -> str:
        """A job of alice that the console has seen. Returns the name of its role."""
        content = STARTS.replace("{new}", name)
        answer = self.api("alice", "POST", "/api/v2/jobs", content=content, headers={"Content-Type": "text/yaml"})
        assert answer.status_code == 202, answer.text
        path = f"/api/v2/jobs/alice~{name}"
        until_listed(self.web, self.token("alice"), name)
        (role,) = self.api("alice", "GET", path).json()["taskRoles"]
        return str(role)

    def saved(self, title: str) -> str:
        """A template of alice. Returns its name."""
        alice = self.browser("alice")
        body = {"form": form_of(alice.get("/templates/new")), "title": title, "content": FILE, "group": "vision"}
        answer = alice.post("/templates", data=body, headers=ORIGIN)
        assert answer.status_code == 303, answer.text
        return str(answer.headers["location"].partition("?")[0].rpartition("/")[2])

    def words(self, operation: Operation, person: str) -> dict[str, str]:
        """The names of a case. A case that changes a thing has one of its own."""
        new, texts = f"n{next(NUMBERS)}", operation.words
        found = {**self.shared, "person": person or "nobody", "new": new, "now": f"{time.time():.3f}"}
        if operation.changes:
            found |= {"job": f"j{new}", "role": self.submitted(f"j{new}")}
        if "{target}" in texts:
            body = {"username": f"t{new}", "password": "the password of t", "grouplist": ["speech"]}
            assert self.api("dora", "POST", "/api/v2/users", json=body).status_code == 201
            found["target"] = f"t{new}"
        if "{binding}" in texts:
            group = {"groupname": "vision"}
            assert self.api("dora", "PUT", f"/api/v2/users/t{new}/group", json=group).status_code == 201
            path = "/apis/rbac.authorization.k8s.io/v1/namespaces/vision/rolebindings"
            names = [one["metadata"]["name"] for one in self.users.admin.ask("GET", path)["items"]]
            (found["binding"],) = [name for name in names if f"t{new}" in name]
        if "{token}" in texts:
            found["token"] = self.api("alice", "POST", "/api/v2/tokens/application").json()["token"]
        if "{template}" in texts and operation.method != "GET":
            found["template"] = self.saved(f"t{new}")
        found["map"] = config_map_name(found["template"])
        return found


@pytest.fixture(scope="module")
def matrix(served: Served, console: Console, users: Users) -> Matrix:
    _, web = served
    made = Matrix(web, console, users)
    made.shared = {"job": "shared", "role": made.submitted("shared"), "template": made.saved("shared")}
    job = users.admin.ask("GET", f"{KUBERNETES}/shared")
    labels = {"pai-install/user": "alice", "batch.kubernetes.io/job-name": "shared"}
    labels["batch.kubernetes.io/job-completion-index"] = "0"
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "shared", "uid": job["metadata"]["uid"]}
    metadata = {"name": "shared-0", "namespace": "vision", "labels": labels}
    pod = {"metadata": {**metadata, "ownerReferences": [{**owner, "controller": True}]}}
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}
    assert users.admin.create({"apiVersion": "v1", "kind": "Pod", **pod, "spec": spec}) == ""
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    place = {"name": "data", "namespace": "vision"}
    users.admin.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": place, "spec": claim})
    users.admin.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1"}})
    gpus = {"nvidia.com/gpu": "8"}
    users.admin.ask("PATCH", "/api/v1/nodes/gpu-1/status", {"status": {"capacity": gpus, "allocatable": gpus}}, MERGE)
    log = f"/api/v2/jobs/alice~shared/attempts/0/taskRoles/{made.shared['role']}/taskIndex/0/attempts/0/logs"
    until(lambda: made.api("alice", "GET", log).status_code == 200, 60)
    until(lambda: made.browser("alice").get("/nodes/gpu-1").status_code == 200, 60)
    return made


def filled(value: Any, words: Mapping[str, str]) -> Any:
    """The value with names in place of {job}, {person}, and others."""
    if isinstance(value, Mapping):
        return {key: filled(one, words) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, words) for one in value]
    if not isinstance(value, str):
        return value
    for name, word in words.items():
        value = value.replace(f"{{{name}}}", word)
    return value


def answered(matrix: Matrix, operation: Operation, person: str, words: Mapping[str, str]) -> tuple[bool, str]:
    """Whether the console does it, and its answer."""
    path, body = filled(operation.path, words), filled(operation.body, words)
    if operation.page:
        browser = matrix.browser(person)
        if operation.method == "GET":
            answer = browser.get(path)
        else:
            form = form_of(browser.get("/account" if person else "/login"))
            answer = browser.post(path, data={**body, "form": form}, headers=ORIGIN)
        permitted = answer.status_code < 400 and "/login" not in answer.headers.get("location", "")
        return permitted, f"{answer.status_code} {answer.headers.get('location', '')}"
    place = path.removeprefix("/..") if path.startswith("/../") else f"{PREFIX}{path}"
    content = {"content": body} if isinstance(body, str) else {"json": body}
    answer = matrix.web.request(operation.method, place, headers=matrix.token(person), **content)
    code = answer.json().get("code", "") if answer.status_code >= 400 else ""
    return answer.status_code < 400 or (operation.code != "" and code == operation.code), answer.text[:200]


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_console_permits_what_the_api_server_permits(matrix: Matrix, name: str) -> None:
    operation, found = OPERATIONS[name], dict[str, Any]()
    for person in PEOPLE:
        words = matrix.words(operation, person)
        if isinstance(operation.asked, frozenset):
            may, why = person in operation.asked, ""
        else:
            method, path = operation.asked
            account = matrix.users.of[person] if person else matrix.users.admin.as_("nobody")
            kind = MERGE if method == "PATCH" else "application/json"
            why = asked(account, method, filled(path, words), filled(operation.change, words), kind)
            may = not why
        does, text = answered(matrix, operation, person, words)
        found[person] = (does, may, text, why[:200])
    assert {person: one for person, one in found.items() if one[0] != one[1]} == {}
    assert isinstance(operation.asked, frozenset) or (not found[""][0] and any(one[0] for one in found.values()))


def routes(served: Served) -> Iterator[tuple[str, Route]]:
    """Prefix and route of everything that the server answers."""
    services, _ = served
    for one in create_app(services.settings, services).routes:
        if isinstance(one, Route):
            yield "", one
        elif isinstance(one, Mount) and one.path == PREFIX:
            yield from ((PREFIX, inner) for inner in one.routes if isinstance(inner, Route))
        else:
            assert one in absent.ROUTES, f"look into {one}"


def test_no_route_is_left_out(served: Served) -> None:
    """A new route needs a row in rights_matrix.py. Old pages redirect, whoever asks."""
    tried = set()
    every = [(prefix, one) for prefix, one in routes(served) if one not in old_pages.ROUTES]
    for operation in OPERATIONS.values():
        path = operation.path.partition("?")[0]
        path = path if operation.page else path.removeprefix("/..") if path.startswith("/../") else f"{PREFIX}{path}"
        for prefix, one in every:
            scope = {"type": "http", "method": operation.method, "path": path.removeprefix(prefix), "headers": []}
            if path.startswith(prefix) and one.matches(scope)[0] is Match.FULL:
                tried.add((operation.method, prefix, one.path))
                break
    of_all = {(method, prefix, one.path) for prefix, one in every for method in (one.methods or set()) - {"HEAD"}}
    untried = {f"{method} {path}" for method, prefix, path in of_all - tried - {("GET", "", "/healthz")}}
    assert untried - set(ELSEWHERE) == set()
    assert set(ELSEWHERE) - untried == set()
    assert [file for file in set(ELSEWHERE.values()) if not (TESTS / file).is_file()] == []


def test_a_log_is_read_as_its_caller(matrix: Matrix, served: Served, console: Console) -> None:
    """Also at an address that the person should not have. There is no kubelet: the API server says what is missing."""
    services, web = served
    attributes = {"verb": "get", "resource": "pods", "subresource": "log", "namespace": "vision", "name": "shared-0"}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    for person in PEOPLE[:-1]:
        spec = {"resourceAttributes": attributes}
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        may = matrix.users.of[person].ask("POST", path, {**review, "spec": spec})["status"]["allowed"]
        caller: Caller = console.sign_in.users.caller(person, CallerKind.PASSWORD)
        token = services.links.seal(caller, LogRequest("vision", "shared-0"))
        answer = web.get(PLACE, params={"token": token})
        code = json.loads(answer.text)["code"] if answer.status_code >= 400 else ""
        assert (code != "ForbiddenUserError") is may, (person, answer.text)
    assert web.get(PLACE, params={"token": "x"}).status_code == 401


def test_lists_have_the_jobs_that_the_api_server_lists(matrix: Matrix) -> None:
    for person in PEOPLE[:-1]:
        may = asked(matrix.users.of[person], "GET", KUBERNETES) == ""
        for path in ("/api/v2/jobs", "/api/v1/jobs", "/api/v1/user/alice/jobs"):
            answer = matrix.api(person, "GET", path)
            assert ("shared" in {one["name"] for one in answer.json()}) is may, (person, path)
