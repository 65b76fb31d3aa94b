"""A console over a cluster in memory, and its callers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.requests import HTTPConnection
from starlette.testclient import TestClient

from pai_install.console.caller import Caller, CallerKind
from pai_install.console.server import create_app
from pai_install.console.services import ConsoleServices
from pai_install.console.settings import ConsoleSettings
from pai_install.console.sign_in.service import open_sign_in
from pai_install.profile.publish import profile_object
from pai_install.schedulers.last_applied import kept_object
from pai_install.users.model import ACCOUNT_PREFIX
from tests.unit.console.live import LiveClients, LiveCluster
from tests.unit.jobs.sites import research
from tests.waiting import until


def caller(name: str, *groups: str, admin: bool = False, kind: CallerKind = CallerKind.PASSWORD) -> Caller:
    """A user of the cluster."""
    return Caller(f"{ACCOUNT_PREFIX}{name}", name, kind, f"uid-{name}", groups, admin=admin)


ALICE, BOB = caller("alice", "Vision_1"), caller("bob", "nlp")
CALLERS = {
    "alice": ALICE,
    "bob": BOB,
    "carol": caller("carol", "Vision_1", "nlp"),
    "dan": caller("dan"),
    "root": caller("root", "admins", admin=True),
    "program": caller("alice", "Vision_1", kind=CallerKind.APPLICATION),
}
ROLES: dict[str, frozenset[str] | None] = {
    "alice": frozenset({"vision-1", "pai-templates"}),
    "bob": frozenset({"nlp", "pai-templates"}),
    "carol": frozenset({"vision-1", "nlp", "pai-templates"}),
    "dan": frozenset({"pai-templates"}),
    "root": None,
}


@dataclass(frozen=True)
class NamedCallers:
    """Takes the bearer token as the name of the caller."""

    def authenticate(self, request: HTTPConnection) -> Caller | None:
        return CALLERS.get(request.headers.get("authorization", "").removeprefix("Bearer "))


def signed_in(name: str) -> dict[str, str]:
    """The headers of a caller."""
    return {"Authorization": f"Bearer {name}"}


def eventually(holds: Callable[[], bool]) -> None:
    """Waits for a watch, which is quick."""
    until(holds, 60, pause_s=0.01)


@pytest.fixture
def settings(tmp_path: Path) -> ConsoleSettings:
    """Settings of a console for tests."""
    key = tmp_path / "signing"
    key.write_bytes(b"k" * 32)
    return ConsoleSettings(
        names=("testserver",), signing_key=key, api_server="https://api:6443", api_authority=key, api_token=key
    )


@pytest.fixture
def kubernetes() -> Iterator[LiveCluster]:
    """The cluster behind the console, of a site with virtual clusters and groups."""
    profile, made = research(), LiveCluster()
    made.put(profile_object(profile), kept_object(profile.require_scheduling()))
    yield made
    made.end()


@pytest.fixture
def clients(kubernetes: LiveCluster) -> LiveClients:
    """Clients of the cluster."""
    return LiveClients(kubernetes, ROLES)


@pytest.fixture
def services(settings: ConsoleSettings, clients: LiveClients) -> Iterator[ConsoleServices]:
    """The services of the console, with a model that is up to date."""
    named = (NamedCallers(),)
    made = ConsoleServices(settings, clients, named, page_authenticators=named, sign_in=open_sign_in(settings, clients))
    for one in made.model._recent:
        one.seconds = 0  # no test waits for a value to become old
    made.model.load()
    eventually(lambda: made.model.is_ready)
    yield made
    made.model.stop()


@pytest.fixture
def web(settings: ConsoleSettings, services: ConsoleServices) -> TestClient:
    """A client of the console."""
    return TestClient(create_app(settings, services), raise_server_exceptions=False, follow_redirects=False)
