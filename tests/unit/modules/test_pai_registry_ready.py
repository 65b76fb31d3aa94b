"""A machine asks the cache before it gets a login or an authority that the cache may not know."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pai_install.registry.identity import Identity, make_identity, serve_from, with_new_authority
from tests.ansible_path import module_util
from tests.unit.modules.conftest import ModuleFailedError

Run = Callable[..., dict[str, Any]]
NOW = datetime.now(UTC)
OLD = make_identity(("127.0.0.1",), NOW)
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
    servers: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def start(identity: Identity) -> str:
        file = tmp_path / "tls.pem"
        file.write_text(identity.chain)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        server = ThreadingHTTPServer(("127.0.0.1", 0), StandInCache)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        servers.append((server, thread))
        return f"https://127.0.0.1:{server.server_port}"

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


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
