"""Logs of the system on a real API server: with the right of their reader."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tests.integration.console.conftest import HOST, PASSWORDS, Console, console, own, users
from tests.integration.console.test_jobs import Served, served
from tests.integration.console.test_pages import ORIGIN, form_of
from tests.integration.control_plane import create_system_pod
from tests.integration.users.conftest import Users

__all__ = ["console", "own", "served", "users"]
LOG, GONE = "/services/kube-system/log/component", "/services/kube-system/log/gone"


@pytest.fixture(scope="module")
def system(served: Served, users: Users) -> TestClient:
    """A console of a cluster with a pod outside of groups. No machine runs it."""
    create_system_pod(users.admin, "main")
    return served[1]


def signed_in(web: TestClient, path: str, **fields: str) -> TestClient:
    made = TestClient(web.app, base_url=f"https://{HOST}", follow_redirects=False)
    body = {"form": form_of(made.get("/login")), "from": "/", **fields}
    assert made.post(path, data=body, headers=ORIGIN).status_code == 303
    return made


@pytest.mark.parametrize("way", ["token", "password"])
def test_an_administrator_reads_them(system: TestClient, users: Users, way: str) -> None:
    if way == "token":
        dora = signed_in(system, "/login/token", token=users.tokens["dora"]["status"]["token"])
    else:
        dora = signed_in(system, "/login", username="dora", password=PASSWORDS["dora"])
    page = dora.get("/services").text
    assert LOG in page
    assert dora.get("/services/kube-system/component").status_code == 200
    answer = dora.get(LOG)
    assert answer.status_code == 200, answer.text
    # the API server permits it, and has no kubelet to ask
    assert "data-follow=" in answer.text
    assert dora.get(GONE).status_code == 404


def test_members_read_none_of_them(system: TestClient, console: Console, users: Users) -> None:
    browsers = (
        signed_in(system, "/login", username="alice", password=PASSWORDS["alice"]),
        signed_in(system, "/login/token", token=users.tokens["alice"]["status"]["token"]),
    )
    for alice in browsers:
        for path in (LOG, GONE, "/services/kube-system/component"):
            answer = alice.get(path)
            assert answer.status_code == 403
            assert "for administrators" in answer.text
