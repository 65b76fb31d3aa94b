"""A machine asks the cache before it gets a login or an authority that the cache may not know."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from pai_install.registry.identity import Identity, make_identity, serve_from, with_new_authority
from pai_install.registry.model import ServedNames
from tests.ansible_path import module_util
from tests.unit.modules.conftest import ModuleFailedError
from tests.unit.modules.https import https_server

# where the answer stays "no", the module waits until its time is up
pytestmark = pytest.mark.usefixtures("clock")
Run = Callable[..., dict[str, Any]]
NOW = datetime.now(UTC)
OLD = make_identity(ServedNames(("127.0.0.1",), ("127.0.0.1",)), NOW)
BOTH = with_new_authority(OLD, NOW)
NEW = serve_from(BOTH, 2, NOW)
TOKEN = "bWFjaGluZXM6cGFzcw=="


class StandInCache(BaseHTTPRequestHandler):
    """A stand-in for the cache: TLS and one login."""

    def do_GET(self) -> None:
        right = self.headers.get("Authorization") == f"Basic {TOKEN}"
        self.send_response(200 if right else 401)
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("WWW-Authenticate", "Basic")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_words: Any) -> None:
        """Quiet."""


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[Identity], str]]:
    """Starts a cache with an identity's certificate; its URL."""
    with ExitStack() as servers:
        yield lambda identity: servers.enter_context(https_server(tmp_path, identity.cache, StandInCache))


@pytest.fixture
def ready(run_module: Run, tmp_path: Path) -> Run:
    """The module on a machine that has used the cache."""
    known = tmp_path / "ca.pem"
    known.write_text("an older bundle")

    def ask(url: str, **words: Any) -> dict[str, Any]:
        given = {"ca": OLD.bundle, "auth_token": TOKEN, "known": str(known), "upstream": "none.example", "timeout": 1}
        return run_module("pai_registry_ready", url=url, **{**given, **words})

    return ask


def test_what_the_cache_knows_is_taken(serve: Callable[[Identity], str], ready: Run) -> None:
    assert ready(serve(OLD))["answered"]
    assert ready(serve(NEW), ca=BOTH.bundle)["answered"]


def test_an_authority_that_the_cache_does_not_show_yet(serve: Callable[[Identity], str], ready: Run) -> None:
    """The last stage of a rotation, and a cache that still shows the old certificate."""
    only_new = BOTH.authorities[1].certificate
    with pytest.raises(ModuleFailedError, match="not one that this machine trusts"):
        ready(serve(OLD), ca=only_new)


def test_a_login_that_the_cache_does_not_know_yet(serve: Callable[[Identity], str], ready: Run) -> None:
    with pytest.raises(ModuleFailedError, match=r"does not accept this machine's login.*The machine keeps what it has"):
        ready(serve(OLD), auth_token="bmV3Om5ldw==")


def test_a_cache_that_is_away_holds_up_who_uses_it_and_no_one_else(ready: Run, tmp_path: Path) -> None:
    with pytest.raises(ModuleFailedError, match="does not answer"):
        ready("https://127.0.0.1:9")
    assert ready("https://127.0.0.1:9", known=str(tmp_path / "none"))["answered"] is False


def test_a_machine_that_moves_to_another_address_asks_there(
    ready: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.pem").write_text(OLD.bundle)
    used = tmp_path / "none.example" / "hosts.toml"
    used.parent.mkdir()
    host = 'host."https://127.0.0.1:9"'
    used.write_text(f'[{host}]\ncapabilities = ["pull"]\n[{host}.header]\nAuthorization = "Basic {TOKEN}"\n')
    registry = module_util("pai_registry")
    monkeypatch.setattr(registry, "endpoint", partial(registry.endpoint, folder=str(tmp_path)))
    assert ready("https://127.0.0.1:9")["answered"] is False, "it is there already"
    with pytest.raises(ModuleFailedError, match="does not answer"):
        ready("https://127.0.0.1:8")


def test_check_mode_asks_no_one(ready: Run) -> None:
    assert ready("https://127.0.0.1:9", check=True)["answered"] is False


def test_a_store_that_still_answers_without_tls_is_told_by_its_name(ready: Run) -> None:
    """As an earlier version set it up, where a run passes over it: what the machine has goes on."""
    with HTTPServer(("127.0.0.1", 0), StandInCache) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        with pytest.raises(ModuleFailedError, match=r"^the component store is not ready.*answers without TLS"):
            ready(f"https://127.0.0.1:{server.server_port}", what="the component store")
        server.shutdown()
        thread.join()
