"""Host names, and headers for browsers."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from pai_install.console.server import create_api, create_app
from pai_install.console.services import ConsoleServices


@pytest.mark.parametrize("path", ["/", "/rest-server/api/v2/info", "/rest-server/nothing"])
def test_a_foreign_host_name(services: ConsoleServices, path: str) -> None:
    web = TestClient(create_app(services.settings, services))
    assert web.get(path, headers={"Host": "evil.example.org"}).status_code == 400
    assert web.get(path, headers={"Host": "testserver"}).status_code != 400


def test_the_own_port_of_the_api_refuses_foreign_names_as_json(services: ConsoleServices) -> None:
    web = TestClient(create_api(services))
    answer = web.get("/api/v2/info", headers={"Host": "evil.example.org"})
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParametersError")
    answer = web.get("/api/v2/info")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers


def test_every_answer_has_headers_for_browsers(services: ConsoleServices) -> None:
    web = TestClient(create_app(services.settings, services))
    for path in ("/", "/healthz", "/rest-server/api/v2/info", "/nothing"):
        headers = web.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/rest-server/a%0d%0aX:%20y", "/a%00", "/rest-server/%E2%80%A8"])
def test_control_characters_in_an_address(services: ConsoleServices, path: str) -> None:
    assert TestClient(create_app(services.settings, services)).get(path).status_code == 400
