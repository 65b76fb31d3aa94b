"""The client over HTTP on a real API server: identities, certificates, threads, lost connections."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pai_install.cluster.client import ApiError, Impersonation, NoClusterError, Select
from pai_install.cluster.credentials import BearerToken
from pai_install.cluster.http import Connections, api_server
from pai_install.cluster.over_http import HttpClient, with_token_file
from pai_install.kube.model import Ref
from tests.errors import raises
from tests.integration.clients import http_client
from tests.integration.control_plane import Api, Json
from tests.ports import free_port

REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture
def client(api: Api) -> HttpClient:
    found = http_client(api)
    end = time.monotonic() + 30
    while found.get([Ref("clusterrolebinding", "system:basic-user")]) == (None,):  # it starts without any right
        assert time.monotonic() < end
        time.sleep(0.2)
    return found


def who(client: HttpClient) -> Json:
    """How the API server sees the client."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}
    (found,) = client.create([review])
    answer: Json = found["status"]["userInfo"]
    return answer


def test_identities_share_connections(client: HttpClient) -> None:
    eve = client.with_identity(Impersonation("oidc:Ève", ("pai:users", "a b"), "4711"))
    assert who(client)["username"] == "admin"
    found = who(eve)
    assert (found["username"], found["uid"]) == ("oidc:Ève", "4711")
    assert found["groups"] == ["pai:users", "a b", "system:authenticated"]
    assert who(client.with_credentials(BearerToken("alice-token")))["username"] == "alice"
    with raises("api-request-refused", kind=ApiError) as caught:
        eve.list(Select(("secrets",), "default"))
    assert caught.value.reason == "Forbidden"


@pytest.mark.parametrize("user", ["", " ", "admin ", " admin", "a\nb", "a\r\nImpersonate-User: admin"])
def test_no_name_hides_another(client: HttpClient, user: str) -> None:
    """An API server ignores an empty Impersonate-User, so the request would be the administrator's."""
    for identity in (Impersonation(user), Impersonation("eve", (user,))):
        with raises("identity-invalid"):
            client.with_identity(identity).list(Select(("pods",)))


def test_a_token_that_changed_is_read_again(client: HttpClient, api: Api, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("alice-token\n")
    assert who(client)["username"] == "admin"
    client = with_token_file(f"https://127.0.0.1:{api.port}", api.authority, file)
    assert who(client)["username"] == "alice"
    other = tmp_path / "new"
    other.write_text("admin-token\n")
    other.replace(file)
    assert who(client)["username"] == "admin"
    file.unlink()
    with raises("token-unreadable"):
        who(client)


def test_a_wrong_token_is_unauthorized(client: HttpClient) -> None:
    with raises("api-request-refused", kind=ApiError) as caught:
        client.with_credentials(BearerToken("nobody")).list(Select(("pods",)))
    assert caught.value.reason == "Unauthorized"


def test_an_api_server_that_is_not_ours_gets_no_token(api: Api) -> None:
    place = api_server(f"https://127.0.0.1:{api.port}", name="other")  # the authorities of the system
    with raises("no-control-plane-answers", kind=NoClusterError) as caught:
        HttpClient(Connections([place]), BearerToken("admin-token")).list(Select(("pods",)))
    assert "certificate" in caught.value.down["other"]


def test_the_next_control_plane_answers(api: Api) -> None:
    away = api_server(f"https://127.0.0.1:{free_port()}", authority=api.authority, name="away")
    here = api_server(f"https://127.0.0.1:{api.port}", authority=api.authority, name="here")
    client = HttpClient(Connections([away, here]), BearerToken("admin-token"))
    name = f"t{time.time_ns():x}"
    client.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    assert client.get([Ref("namespace", name)]) != (None,)
    with raises("no-control-plane-answers", kind=NoClusterError) as caught:
        HttpClient(Connections([away])).list(Select(("pods",)))
    assert caught.value.down["away"] == "Connection refused"


def test_threads_share_a_client(client: HttpClient) -> None:
    identities = [Impersonation(f"user-{number}") for number in range(40)]
    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda one: who(client.with_identity(one))["username"], identities))
    assert found == [one.user for one in identities]
