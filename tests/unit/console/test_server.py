"""The frame of the console: addresses, errors, limits, and who may use an endpoint."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path

import pytest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from pai_install.cluster.client import ApiError
from pai_install.console.endpoint import ADMINISTRATORS, PEOPLE, SIGNED_IN, ApiCall, RouteAccess, endpoint
from pai_install.console.errors import rest_error
from pai_install.console.serve import create_redirect
from pai_install.console.server import create_api, create_app
from pai_install.console.services import ConsoleServices
from pai_install.console.settings import ConsoleSettings, read_settings
from pai_install.errors import PaiError
from tests.errors import raises
from tests.unit.console.conftest import signed_in


def test_a_client_finds_the_api(web: TestClient) -> None:
    assert web.get("/healthz").status_code == HTTPStatus.OK
    for path in ("/rest-server/api/v2/info", "/rest-server/api/v1"):
        found = web.get(path).json()
        assert {"name", "version", "launcherType", "authnMethod"} == set(found)
        assert (found["launcherType"], found["authnMethod"]) == ("k8s", "basic")


def test_the_own_port_of_the_api_has_no_prefix(services: ConsoleServices) -> None:
    web = TestClient(create_api(services))
    assert web.get("/api/v2/info").json()["launcherType"] == "k8s"
    assert web.get("/healthz").text == "ok"


@pytest.mark.parametrize("path", ["/rest-server/", "/rest-server/api/v2/nothing", "/rest-server/api/v2/x/"])
def test_an_unknown_address_of_the_api_is_json(web: TestClient, path: str) -> None:
    answer = web.get(path)
    assert (answer.status_code, answer.json()["code"]) == (HTTPStatus.NOT_FOUND, "NoApiError")
    assert web.post("/rest-server/api/v2/info").json()["code"] == "NoApiError"


def test_a_closing_slash_changes_nothing(web: TestClient, services: ConsoleServices) -> None:
    assert web.get("/rest-server/api/v2/info/").json()["launcherType"] == "k8s"
    assert TestClient(create_api(services)).get("/api/v2/info/").status_code == HTTPStatus.OK


@pytest.mark.parametrize(
    ("host", "target"),
    [
        ("elsewhere.example.com", "testserver"),
        ("TestServer", "testserver"),
        ("10.0.0.2", "10.0.0.2"),
        ("10.0.0.2:80", "10.0.0.2"),
        ("[fd00::2]", "[fd00::2]"),
        ("10.0.0.2@elsewhere.example.com", "testserver"),
    ],
)
def test_the_plain_port_redirects_browsers_to_the_same_name_and_serves_no_api(
    settings: ConsoleSettings, host: str, target: str
) -> None:
    """The first name may be that of a lost control plane."""
    named = settings.model_copy(update={"names": ("testserver", "10.0.0.2", "fd00::2")})
    web = TestClient(create_redirect(named), follow_redirects=False, base_url="http://testserver")
    assert web.get("/", headers={"Host": host}).headers["location"] == f"https://{target}/"
    assert {web.get(path).status_code for path in ("/healthz", "/rest-server/api/v2/info")} == {404}


def answering(services: ConsoleServices, access: RouteAccess) -> TestClient:
    """A console with a route that tells its caller."""

    def handler(call: ApiCall) -> Response:
        return JSONResponse({"label": call.caller.label})

    route = Route("/api/v2/test", endpoint(handler, access, max_body=100), methods=["GET", "POST"])
    app = create_app(
        services.settings, ConsoleServices(services.settings, services.clients, services.authenticators, (route,))
    )
    return TestClient(app, raise_server_exceptions=False)


@pytest.mark.parametrize(
    ("access", "allowed"),
    [
        (SIGNED_IN, {"alice", "bob", "root", "program"}),
        (PEOPLE, {"alice", "bob", "root"}),
        (ADMINISTRATORS, {"root"}),
        (RouteAccess(public=True), {"alice", "bob", "root", "program", "no-one"}),
    ],
)
def test_access(services: ConsoleServices, access: RouteAccess, allowed: set[str]) -> None:
    web = answering(services, access)
    answers = {
        name: web.get("/rest-server/api/v2/test", headers=signed_in(name))
        for name in ("alice", "bob", "root", "program", "no-one")
    }
    assert {name for name, answer in answers.items() if answer.status_code == HTTPStatus.OK} == allowed
    refused = {name: answer.json()["code"] for name, answer in answers.items() if name not in allowed}
    assert refused == {name: "UnauthorizedUserError" if name == "no-one" else "ForbiddenUserError" for name in refused}


def test_a_large_body_is_refused(services: ConsoleServices) -> None:
    answer = answering(services, SIGNED_IN).post(
        "/rest-server/api/v2/test", content=b"x" * 101, headers=signed_in("alice")
    )
    assert answer.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert answer.json()["code"] == "InvalidParametersError"


def test_a_failure_of_the_console_tells_nothing_of_its_cause(
    services: ConsoleServices, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the sender the cause, nor the log a token that is a part of the address."""

    def broken(call: ApiCall) -> Response:
        raise RuntimeError("a secret")

    route, token = Route("/api/v2/broken/{token}", endpoint(broken)), "t0ken" * 8
    app = create_app(
        services.settings, ConsoleServices(services.settings, services.clients, services.authenticators, (route,))
    )
    answer = TestClient(app, raise_server_exceptions=False).get(
        f"/rest-server/api/v2/broken/{token}", headers=signed_in("bob")
    )
    assert (answer.status_code, answer.json()["code"]) == (500, "UnknownError")
    assert "secret" not in answer.text
    told = [one.getMessage() for one in caplog.records if one.name == "pai_install.console"]
    assert "GET /rest-server/api/v2/broken/*** failed" in told
    assert not [one for one in told if token in one]


def test_a_probe_has_no_limit(web: TestClient, services: ConsoleServices) -> None:
    """A load balancer may have the address of the kubelet."""
    services.rates.rates["api"] = (1, 3600.0)
    assert [web.get("/healthz").status_code for _ in range(3)] == [200] * 3
    assert [web.get("/rest-server/api/v2/info").status_code for _ in range(2)] == [200, 429]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (PaiError("x", code="job-exists"), 409, "ConflictJobError"),
        (PaiError("x", code="unknown-job"), 404, "NoJobError"),
        (PaiError("x", code="job-file-invalid", details="1:2"), 400, "InvalidProtocolError"),
        (ApiError("x", reason="Forbidden"), 403, "ForbiddenUserError"),
        (ApiError("x", reason="Unauthorized"), 401, "UnauthorizedUserError"),
        (ApiError("x", reason="NoAnswer", details="reset"), 503, "UnknownError"),
        (PaiError("x", code="another"), 400, "UnknownError"),
    ],
)
def test_errors_have_codes_of_openpai(
    error: PaiError, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the cause where nobody can ask the cluster for it."""
    found = rest_error(error)
    assert (found.status, found.code) == (status, code)
    assert [one.getMessage() for one in caplog.records] == ([f"x: {error.details}"] if status == 503 else [])


def test_problems_of_a_job_file_reach_the_sender() -> None:
    assert "1:2" in rest_error(PaiError("x", code="job-file-invalid", details="1:2")).message


def test_settings_are_read_from_a_file(tmp_path: Path, settings: ConsoleSettings) -> None:
    file = tmp_path / "settings.json"
    file.write_text(settings.model_dump_json())
    assert read_settings(file) == settings


def test_wrong_settings_are_named_without_their_values(tmp_path: Path, settings: ConsoleSettings) -> None:
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({**json.loads(settings.model_dump_json()), "port": "s3cret"}))
    with raises("console-settings-invalid") as caught:
        read_settings(file)
    assert "port" in caught.value.details
    assert "s3cret" not in caught.value.details
    with raises("console-settings-invalid"):
        read_settings(tmp_path / "absent.json")
