"""A console on a real API server: with its own account, rights, and the users of the tests of rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from pai_install.cluster.credentials import BearerToken
from pai_install.cluster.http import Connections, api_server
from pai_install.cluster.over_http import HttpClient
from pai_install.console.clients import CallerClients
from pai_install.console.connect import with_sign_in
from pai_install.console.server import create_app
from pai_install.console.settings import ConsoleSettings
from pai_install.console.sign_in.service import SignInService, open_sign_in
from pai_install.profile.model import ClusterProfile, ProfileGroup
from pai_install.users.console_rights import NAME, NAMESPACE, console_objects
from tests.integration.control_plane import Api, Json
from tests.integration.shared_control_plane import wait_for_rights
from tests.integration.users.conftest import NAMESPACES, Users, users
from tests.integration.users.test_rights import asked
from tests.waiting import until

__all__ = ["Console", "console", "users"]

HOST = "pai.example.org"
PASSWORDS = {name: f"password of {name}" for name in ("alice", "bob", "carol", "dora")}
PROFILE = ClusterProfile(
    groups=(
        ProfileGroup(name="vision", namespace="vision"),
        ProfileGroup(name="speech", namespace="speech"),
        ProfileGroup(name="ops", namespace="ops", administrators=True),
    )
)


@dataclass(frozen=True)
class Console:
    """sign_in: behind the pages. new: a browser without cookies."""

    admin: Api
    own: HttpClient
    settings: ConsoleSettings
    sign_in: SignInService
    new: Callable[[], TestClient]

    def token(self, name: str, password: str = "") -> str:
        """A token of OpenPAI's API."""
        found = self.login(name, password or PASSWORDS[name])
        return str(found["token"])

    def login(self, name: str, password: str) -> Json:
        body = {"username": name, "password": password}
        answer = self.new().post("/rest-server/api/v2/authn/basic/login", data=body)
        found: Json = answer.json()
        return {"status": answer.status_code, **found}

    def ask(self, method: str, path: str, token: str, body: Json | None = None) -> Json:
        """Status and content of an answer of the API."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = self.new().request(method, f"/rest-server{path}", headers=headers, json=body)
        found = answer.json()
        return {"status": answer.status_code, **(found if isinstance(found, dict) else {"list": found})}


def settings_of(folder: Path, api: Api) -> ConsoleSettings:
    (folder / "signing.key").write_text("00" * 32)
    return ConsoleSettings(
        names=(HOST, "10.0.0.1"),
        signing_key=folder / "signing.key",
        api_server=f"https://127.0.0.1:{api.port}",
        api_authority=api.authority,
        api_token=folder / "token",
    )


@pytest.fixture(scope="module")
def own(users: Users) -> HttpClient:
    """The console's own client."""
    users.admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}})
    for entry in console_objects("kueue", (*NAMESPACES, "ops"), "1.36.3"):
        users.admin.apply(entry)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = users.admin.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAME}/token", body)
    found = users.admin.as_(token["status"]["token"])
    wait_for_rights(users.admin)
    until(lambda: asked(found, "GET", f"/api/v1/namespaces/{NAMESPACE}/secrets") == "")
    place = api_server(f"https://127.0.0.1:{users.admin.port}", authority=users.admin.authority, name="here")
    return HttpClient(Connections([place]), BearerToken(found.token))


@pytest.fixture(scope="module")
def console(users: Users, own: HttpClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A console whose users have passwords."""
    settings, clients = settings_of(tmp_path_factory.mktemp("console"), users.admin), CallerClients(own)
    sign_in = open_sign_in(settings, clients)
    sign_in.users.start()
    until(lambda: sign_in.users.is_known)
    for name, password in PASSWORDS.items():
        sign_in.passwords.write(name, sign_in.users.uid(name), password)
    app = create_app(settings, with_sign_in(settings, clients, sign_in, None, lambda: PROFILE))

    def browser() -> TestClient:
        return TestClient(app, base_url=f"https://{HOST}", follow_redirects=False)

    yield Console(users.admin, own, settings, sign_in, browser)
    sign_in.users.stop()
