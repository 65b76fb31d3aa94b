"""Each kind of route answers a person as the API server answers that person's own account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.testclient import TestClient

from pai_install.jobs.compile.names import TAGS
from pai_install.users.objects import account
from tests.integration.console.conftest import PASSWORDS, Console, console, own, users
from tests.integration.console.test_jobs import FILE, JOBS, Served, served, until
from tests.integration.users.conftest import Users
from tests.integration.users.test_rights import asked

__all__ = ["console", "own", "served", "users"]
# alice's group has bob, carol is in another one, dora is an administrator. "": nobody
PEOPLE = ("alice", "bob", "carol", "dora", "")
JOB, KUBERNETES = "/api/v2/jobs/alice~{job}", "/apis/batch/v1/namespaces/vision/jobs"
END = "?propagationPolicy=Background&dryRun=All"
MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Operation:
    """A request to the console, and what it means at the API server. Changes are dry runs there."""

    method: str
    path: str
    asked: tuple[str, str]
    body: Mapping[str, Any] | None = None
    change: Mapping[str, Any] | None = None


READ = ("GET", f"{KUBERNETES}/{{job}}")
STOP = {"value": "STOP"}
OPERATIONS = {
    "job": Operation("GET", JOB, READ),
    "old address": Operation("GET", "/api/v1/user/alice/jobs/{job}", READ),
    "attempt": Operation("GET", f"{JOB}/attempts/0", READ),
    "history": Operation("GET", f"{JOB}/job-attempts", READ),
    "instance": Operation("GET", f"{JOB}/attempts/0/taskRoles/{{role}}/taskIndex/0/attempts", READ),
    "file": Operation("GET", f"{JOB}/config", READ),
    "events": Operation("GET", f"{JOB}/events", ("GET", "/api/v1/namespaces/vision/events")),
    "nodes": Operation("GET", "/api/v2/kubernetes/nodes", ("GET", "/api/v1/nodes")),
    "pods": Operation("GET", "/api/v2/kubernetes/pods", ("GET", "/api/v1/pods")),
    "users": Operation("GET", "/api/v2/users", ("GET", "/api/v1/namespaces/pai-users/serviceaccounts")),
    "new user": Operation(
        "POST",
        "/api/v2/users",
        ("POST", "/api/v1/namespaces/pai-users/serviceaccounts?dryRun=All"),
        {"username": "n-{person}", "password": "the password of n", "grouplist": ["vision"]},
        account("n-{person}"),
    ),
    "tag": Operation(
        "PUT",
        f"{JOB}/tag",
        ("PATCH", f"{KUBERNETES}/{{job}}?dryRun=All"),
        {"value": "mine"},
        {"metadata": {"annotations": {TAGS: '{"tags":["mine"]}'}}},
    ),
    "stop": Operation("PUT", f"{JOB}/executionType", ("DELETE", f"{KUBERNETES}/{{job}}{END}"), STOP),
}


def filled(value: Any, words: Mapping[str, str]) -> Any:
    """The value with names in place of {job} and {person}."""
    if isinstance(value, Mapping):
        return {key: filled(one, words) for key, one in value.items()}
    if not isinstance(value, str):
        return value
    for name, word in words.items():
        value = value.replace(f"{{{name}}}", word)
    return value


def signed_in(console: Console, person: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {console.token(person, PASSWORDS[person])}"} if person else {}


def submitted(web: TestClient, console: Console, name: str) -> str:
    """A job of alice that the console has seen. Returns the name of its role."""
    alice = signed_in(console, "alice")
    content = FILE.replace("name: train", f"name: {name}")
    answer = web.post(JOBS, content=content, headers={**alice, "Content-Type": "text/yaml"})
    assert answer.status_code == 202, answer.text
    until(lambda: web.get(f"{JOBS}/alice~{name}", headers=alice).status_code == 200)
    (role,) = web.get(f"{JOBS}/alice~{name}", headers=alice).json()["taskRoles"]
    return str(role)


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_console_permits_what_the_api_server_permits(
    served: Served, console: Console, users: Users, name: str
) -> None:
    _, web = served
    operation, found = OPERATIONS[name], {}
    for person in PEOPLE:
        words = {"job": f"{name.replace(' ', '-')}-{person or 'nobody'}", "person": person or "nobody"}
        words["role"] = submitted(web, console, words["job"])
        method, path = operation.asked
        user = users.of[person] if person else users.admin.as_("nobody")
        why = asked(user, method, filled(path, words), filled(operation.change, words), how(method))
        body = filled(operation.body, words)
        address = f"/rest-server{filled(operation.path, words)}"
        answer = web.request(operation.method, address, headers=signed_in(console, person), json=body)
        found[person] = (answer.status_code < 400, not why, answer.text[:100], why[:100])
    assert {person: one for person, one in found.items() if one[0] != one[1]} == {}
    assert not found[""][0]
    assert any(one[0] for one in found.values())


def how(method: str) -> str:
    return MERGE if method == "PATCH" else "application/json"


def test_lists_have_the_jobs_that_the_api_server_lists(served: Served, console: Console, users: Users) -> None:
    _, web = served
    submitted(web, console, "listed")
    for person in PEOPLE[:-1]:
        may = asked(users.of[person], "GET", KUBERNETES) == ""
        for path in ("/api/v2/jobs", "/api/v1/jobs", "/api/v1/user/alice/jobs"):
            answer = web.get(f"/rest-server{path}", headers=signed_in(console, person))
            assert ("listed" in {one["name"] for one in answer.json()}) is may, (person, path)
