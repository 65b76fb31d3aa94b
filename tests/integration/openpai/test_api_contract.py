"""What OpenPAI's own API test asks for, in our words: statuses, codes, and texts that its clients compare."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.integration.openpai.conftest import Console, console, quickstart
from tests.integration.openpai.test_api_suite import JOBSETS, collector
from tests.waiting import until

__all__ = ["console", "quickstart"]
Answer = tuple[int, Any]
NUMBERS = itertools.count()
NO_PROGRAMS = "Applications are not allowed to do this operation."
NO_MEMBERS = "Non-admin is not allow to do this operation."
EVA = {"username": "eva", "password": "the password of eva"}
JOB = {
    "protocolVersion": 2,
    "type": "job",
    "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "python:3.12"}],
    "taskRoles": {
        "worker": {
            "dockerImage": "image",
            "commands": ["python -V"],
            "resourcePerInstance": {"cpu": 4, "gpu": 1, "memoryMB": 8192, "ports": {"server": 1}},
        }
    },
}


@pytest.fixture(scope="module")
def root(console: Console) -> str:
    return console.token("root")


@pytest.fixture(scope="module")
def program(console: Console, root: str) -> str:
    """An application token of an administrator."""
    return str(asked(console, "POST", "/tokens/application", root)[1]["token"])


@pytest.fixture
def eva(console: Console, root: str) -> Iterator[str]:
    """A user for one case."""
    assert asked(console, "POST", "/users", root, EVA)[0] == 201
    yield "eva"
    asked(console, "DELETE", "/users/eva", root)
    # the next case makes it again
    until(lambda: asked(console, "GET", "/users/eva", root)[0] == 404)


@pytest.fixture
def job(console: Console, root: str) -> Iterator[str]:
    """A job for one case."""
    name = f"job{next(NUMBERS)}"
    status, text = console.ask("POST", "/api/v2/jobs", root, yaml.safe_dump({**JOB, "name": name}), "text/yaml")
    assert status == 202, text
    yield f"/jobs/root~{name}"
    asked(console, "PUT", f"/jobs/root~{name}/executionType", root, {"value": "STOP"})


def asked(console: Console, method: str, path: str, token: str = "", body: Any = None) -> Answer:
    status, text = console.ask(method, f"/api/v2{path}", token, body)
    return status, json.loads(text)


def error(answer: Answer) -> tuple[int, str, str]:
    return answer[0], answer[1]["code"], answer[1]["message"]


def test_a_wrong_name_and_a_wrong_password_are_told_apart(console: Console) -> None:
    login = "/authn/basic/login"
    nobody = asked(console, "POST", login, body={"username": "nobody", "password": "password"})
    assert error(nobody) == (400, "NoUserError", "User nobody is not found.")
    wrong = asked(console, "POST", login, body={"username": "root", "password": "a wrong one"})
    assert error(wrong) == (400, "IncorrectPasswordError", "Password is incorrect.")


def test_a_token_ends_with_the_logout(console: Console) -> None:
    token = console.token("bob")
    assert asked(console, "DELETE", "/authn/basic/logout", token) == (200, {"message": "Logout successfully"})
    assert error(asked(console, "DELETE", "/authn/basic/logout", token))[:2] == (401, "UnauthorizedUserError")


def test_a_user_exists_once(console: Console, root: str, eva: str) -> None:
    assert error(asked(console, "POST", "/users", root, EVA))[:2] == (409, "ConflictUserError")
    assert error(asked(console, "DELETE", "/users/nobody", root))[:2] == (404, "NoUserError")


@pytest.mark.parametrize("patch", [True, False])
def test_an_administrator_changes_a_user(console: Console, root: str, eva: str, patch: bool) -> None:
    data = {"username": eva, "email": "eva@example.org"}
    more = (
        {}
        if patch
        else {"virtualCluster": ["default"], "admin": False, "password": "another password", "extension": {}}
    )
    assert asked(console, "PUT", "/users", root, {"data": {**data, **more}, "patch": patch})[0] == 201
    assert asked(console, "GET", f"/users/{eva}", root)[1]["email"] == "eva@example.org"
    unknown = asked(console, "PUT", "/users", root, {"data": {**data, "username": "nobody"}, "patch": patch})
    assert error(unknown)[:2] == (404, "NoUserError")


def test_people_change_themselves_alone(console: Console, root: str) -> None:
    same = console.password("root")
    data = {"username": "root", "email": "root@example.org", "oldPassword": same, "newPassword": same}
    assert asked(console, "PUT", "/users/me", root, {"data": data, "patch": False})[0] == 201
    other = {"data": {"username": "somebody", "email": "root@example.org"}, "patch": True}
    assert asked(console, "PUT", "/users/me", root, other)[0] == 403


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/users", EVA),
        ("PUT", "/users", {"data": {"username": "bob", "email": "bob@example.org"}, "patch": True}),
        ("DELETE", "/users/bob", None),
        ("PUT", "/users/bob/group", {"groupname": "default"}),
        ("DELETE", "/users/bob/group", {"groupname": "default"}),
        ("PUT", "/users/bob/grouplist", {"grouplist": ["default"]}),
        ("POST", "/groups", {"groupname": "new"}),
        ("PUT", "/groups", {"data": {"groupname": "team", "description": "new"}, "patch": True}),
        ("DELETE", "/groups/team", None),
    ],
)
def test_programs_and_members_administrate_nothing(
    console: Console, program: str, method: str, path: str, body: Any
) -> None:
    assert error(asked(console, method, path, program, body)) == (403, "ForbiddenUserError", NO_PROGRAMS)
    member = console.token("alice")
    assert error(asked(console, method, path, member, body)) == (403, "ForbiddenUserError", NO_MEMBERS)


def test_a_user_joins_and_leaves_groups(console: Console, root: str, eva: str) -> None:
    def groups() -> list[str]:
        return list(asked(console, "GET", f"/users/{eva}", root)[1]["grouplist"])

    for method, path, body, found in (
        ("PUT", "group", {"groupname": "team"}, {"default", "team"}),
        ("DELETE", "group", {"groupname": "team"}, {"default"}),
        ("PUT", "grouplist", {"grouplist": ["team"]}, {"team"}),
    ):
        assert asked(console, method, f"/users/{eva}/{path}", root, body)[0] == 201
        assert set(groups()) == found
        unknown = asked(console, method, f"/users/nobody/{path}", root, body)
        assert error(unknown)[:2] == (404, "NoUserError")
    missing = asked(console, "PUT", f"/users/{eva}/group", root, {"groupname": "missing"})
    assert error(missing)[:2] == (404, "NoGroupError")


def test_groups_are_in_the_files_of_the_site(console: Console, root: str) -> None:
    new = asked(console, "POST", "/groups", root, {"groupname": "new"})
    assert error(new) == (403, "ForbiddenUserError", "groups are written in services-configuration.yaml")
    known = {"data": {"groupname": "team", "description": "new"}, "patch": True}
    assert error(asked(console, "POST", "/groups", root, {"groupname": "team"}))[:2] == (409, "ConflictGroupError")
    assert error(asked(console, "PUT", "/groups", root, known))[:2] == (403, "ForbiddenUserError")
    assert error(asked(console, "DELETE", "/groups/team", root))[:2] == (403, "ForbiddenUserError")
    for method, path, body in (("DELETE", "/groups/new", None), ("PUT", "/groups", {"groupname": "new"})):
        assert error(asked(console, method, path, root, body))[:2] == (404, "NoGroupError")
    wrong: list[Any] = [{}, {"groupname": 1}, {"data": []}, {"data": {"groupname": ""}}]
    for one in wrong:
        assert error(asked(console, "POST", "/groups", root, one))[:2] == (400, "InvalidParametersError")
    assert asked(console, "GET", "/groups/team", root)[1]["groupname"] == "team"


@pytest.mark.parametrize("part", ["", "/config", "/attempts/0", "/job-attempts", "/job-attempts/0"])
def test_a_new_job_has_every_part(console: Console, root: str, job: str, part: str) -> None:
    assert console.ask("GET", f"/api/v2{job}{part}", root)[0] == 200
    assert error(asked(console, "GET", f"/jobs/root~missing{part}", root))[:2] == (404, "NoJobError")


def test_a_job_starts_right_after_its_stop(console: Console, root: str, job: str) -> None:
    """The API waits for the end of its pods."""
    place = f"{JOBSETS}/namespaces/admins/jobsets/{job.rpartition('~')[2]}"
    before = console.admin.ask("GET", place)["metadata"]["uid"]
    with collector(console.admin, 1):
        for value in ("STOP", "START"):
            status, found = asked(console, "PUT", f"{job}/executionType", root, {"value": value})
            assert status == 202, found
    made = console.admin.ask("GET", place)["metadata"]
    assert made["uid"] != before
    assert "deletionTimestamp" not in made


def test_a_job_has_tags(console: Console, root: str, job: str) -> None:
    for method in ("PUT", "DELETE"):
        assert asked(console, method, f"{job}/tag", root, {"value": "testTag"})[0] == 200
