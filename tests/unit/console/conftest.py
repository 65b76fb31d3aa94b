"""A console over a cluster in memory, and its callers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from starlette.requests import HTTPConnection
from starlette.testclient import TestClient

from pai_install.cluster.client import ClusterClient
from pai_install.console.caller import Caller, CallerKind
from pai_install.console.server import create_app
from pai_install.console.services import ConsoleServices
from pai_install.console.settings import ConsoleSettings
from pai_install.users.model import ACCOUNT_PREFIX
from tests.unit.cluster.fake import FakeCluster


def caller(name: str, *groups: str, admin: bool = False, kind: CallerKind = CallerKind.PASSWORD) -> Caller:
    """A user of the cluster."""
    return Caller(f"{ACCOUNT_PREFIX}{name}", name, kind, f"uid-{name}", groups, admin=admin)


ALICE, BOB, ROOT = caller("alice", "vision"), caller("bob", "speech"), caller("root", "vision", admin=True)
PROGRAM = caller("alice", "vision", kind=CallerKind.APPLICATION)
CALLERS = {"alice": ALICE, "bob": BOB, "root": ROOT, "program": PROGRAM}


@dataclass(frozen=True)
class NamedCallers:
    """Takes the bearer token as the name of the caller."""

    def authenticate(self, request: HTTPConnection) -> Caller | None:
        return CALLERS.get(request.headers.get("authorization", "").removeprefix("Bearer "))


@dataclass
class OneCluster:
    """Gives every caller the same cluster. callers: who asked, in order."""

    cluster: FakeCluster
    callers: list[Caller] = field(default_factory=list)

    def of(self, caller: Caller) -> ClusterClient:
        self.callers.append(caller)
        return self.cluster

    def own(self) -> ClusterClient:
        return self.cluster


def signed_in(name: str) -> dict[str, str]:
    """The headers of a caller."""
    return {"Authorization": f"Bearer {name}"}


@pytest.fixture
def settings(tmp_path: Path) -> ConsoleSettings:
    """Settings of a console for tests."""
    key = tmp_path / "signing"
    key.write_bytes(b"k" * 32)
    return ConsoleSettings(
        names=("testserver",), signing_key=key, api_server="https://api:6443", api_authority=key, api_token=key
    )


@pytest.fixture
def kubernetes() -> FakeCluster:
    """The cluster behind the console."""
    return FakeCluster()


@pytest.fixture
def clients(kubernetes: FakeCluster) -> OneCluster:
    """Clients of the cluster."""
    return OneCluster(kubernetes)


@pytest.fixture
def services(settings: ConsoleSettings, clients: OneCluster) -> ConsoleServices:
    """The services of the console."""
    return ConsoleServices(settings, clients, (NamedCallers(),))


@pytest.fixture
def web(settings: ConsoleSettings, services: ConsoleServices) -> TestClient:
    """A client of the console."""
    return TestClient(create_app(settings, services), raise_server_exceptions=False, follow_redirects=False)
