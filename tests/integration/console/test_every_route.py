"""Every route of the API, tried without credentials, by a user of another group, by a guest, and by a program."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from pai_install.console.server import create_api
from pai_install.console.services import ConsoleServices
from tests.integration.console.conftest import PASSWORDS, Console, console, own, users
from tests.integration.console.test_jobs import FILE, JOBS, Served, served, until_listed

__all__ = ["console", "own", "served", "users"]
# path -> what everybody is answered
PUBLIC = {
    "/healthz": {200},
    "/api/v2/info": {200},
    "/api/v1": {200},
    "/api/v2/authn/info": {200},
    "/api/v2/authn/basic/login": {400},
    "/api/v1/token": {400, 401},
    # its address has a signature
    "/log-manager/logs": {400, 401, 403, 404},
    # a site without an identity provider
    "/api/v2/authn/oidc/login": {404},
    "/api/v1/authn/oidc/login": {404},
    "/api/v2/authn/oidc/return": {404},
    "/api/v2/authn/oidc/logout": {404},
}
VALUES = {"name": "alice~train", "job": "train", "user": "alice", "group": "vision", "token": "x", "vc": "default"}
# but the health of the history, which is the same for all jobs
OF_JOBS = re.compile(r"^/api/v2/jobs/\{name\}(?!/job-attempts/healthz)|^/api/v1/.*\{job\}")


def routes(services: ConsoleServices) -> Iterator[tuple[str, str]]:
    """Method and path of each."""
    for route in create_api(services).routes:
        assert not isinstance(route, Mount), "look into it here, too"
        if isinstance(route, Route):
            for method in sorted((route.methods or set()) - {"HEAD", "OPTIONS"}):
                yield method, route.path


def filled(path: str) -> str:
    """The path with the names of the first user's things."""
    return re.sub(r"\{(\w+)(:\w+)?\}", lambda found: VALUES.get(found[1], "0"), path)


@pytest.fixture(scope="module")
def job(served: Served, console: Console) -> str:
    """A job of the first user. Returns the user's token."""
    services, web = served
    token = console.token("alice", PASSWORDS["alice"])
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "text/yaml"}
    assert web.post(JOBS, content=FILE, headers=headers).status_code in (202, 409)
    until_listed(web, headers, "train")
    assert len(list(routes(services))) > 60
    return token


def asked(web: TestClient, method: str, path: str, token: str) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    body = {"value": "STOP", "data": {"username": "alice"}, "username": "alice", "groupname": "vision"}
    return web.request(method, f"/rest-server{filled(path)}", headers=headers, json=body)


def test_nobody_is_answered(served: Served, job: str) -> None:
    services, web = served
    found = {}
    for method, path in routes(services):
        answer = asked(web, method, path, "")
        if answer.status_code not in PUBLIC.get(path, {401}):
            found[method, path] = (answer.status_code, answer.text[:80])
    assert found == {}


def test_a_forged_token_is_answered_nowhere(served: Served, job: str) -> None:
    services, web = served
    header, content, _ = job.split(".")
    found = {
        (method, path): answer.status_code
        for method, path in routes(services)
        if path not in PUBLIC and (answer := asked(web, method, path, f"{header}.{content}.AAAA")).status_code != 401
    }
    assert found == {}


def test_a_job_of_another_group_is_none(served: Served, console: Console, job: str) -> None:
    services, web = served
    carol = console.token("carol", PASSWORDS["carol"])
    tried = [(method, path) for method, path in routes(services) if OF_JOBS.match(path)]
    assert len(tried) > 10
    found = {}
    for method, path in tried:
        answer = asked(web, method, path, carol)
        if answer.status_code not in (400, 403, 404, 501) or "example.com/train" in answer.text:
            found[method, path] = (answer.status_code, answer.text[:200])
    assert found == {}
    assert web.get(f"{JOBS}/alice~train", headers={"Authorization": f"Bearer {job}"}).status_code == 200


def test_a_colleague_sees_a_job_and_does_not_change_it(served: Served, console: Console, job: str) -> None:
    _, web = served
    bob = {"Authorization": f"Bearer {console.token('bob', PASSWORDS['bob'])}"}
    assert web.get(f"{JOBS}/alice~train", headers=bob).status_code == 200
    assert web.put(f"{JOBS}/alice~train/executionType", json={"value": "STOP"}, headers=bob).status_code == 403
    assert web.put(f"{JOBS}/alice~train/tag", json={"value": "mine"}, headers=bob).status_code == 403
    assert web.delete("/rest-server/api/v2/users/alice", headers=bob).status_code == 403


def test_lists_of_another_group_have_none_of_it(served: Served, console: Console, job: str) -> None:
    _services, web = served
    carol = {"Authorization": f"Bearer {console.token('carol', PASSWORDS['carol'])}"}
    for path in ("/api/v2/jobs", "/api/v2/jobs?username=alice", "/api/v1/jobs", "/api/v1/user/alice/jobs"):
        answer = web.get(f"/rest-server{path}", headers=carol)
        assert "train" not in answer.text, path
