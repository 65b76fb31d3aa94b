"""`pai-install job connect`: whom it trusts, and what it says when it is refused."""

from __future__ import annotations

import http
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from pai_install.errors import ExitCode
from tests.internet.authority import Authority
from tests.ports import free_ports
from tests.unit.cli.stub_environment import World, run
from tests.unit.cli.test_job import folder, world

__all__ = ["folder", "world"]
HOSTILE = "go \x1b[2J away"


@dataclass
class Refusing:
    """A console that refuses everyone. seen: paths and tokens."""

    authority: Path
    url: str = ""
    seen: list[tuple[str, str]] = field(default_factory=list)

    def answer(self, connection: ServerConnection, request: Request) -> Response:
        self.seen.append((request.path, request.headers["Authorization"]))
        return connection.respond(http.HTTPStatus.FORBIDDEN, HOSTILE)


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Refusing]:
    authority = Authority("console", tmp_path)
    made = Refusing(tmp_path / "ca.pem")
    made.authority.write_text(authority.pem)
    served = serve(lambda _: None, "127.0.0.1", 0, ssl=authority.serve(["localhost"]), process_request=made.answer)
    made.url = f"https://localhost:{served.socket.getsockname()[1]}"
    thread = threading.Thread(target=served.serve_forever)
    thread.start()
    yield made
    served.shutdown()
    thread.join()


@pytest.fixture
def token(tmp_path: Path) -> str:
    (tmp_path / "token").write_text("my.own.token\n")
    return str(tmp_path / "token")


def connect(*words: str) -> int:
    return run(["job", "connect", "shell", *words])


def test_the_token_goes_to_the_console_that_the_authority_proves(console: Refusing, token: str, capsys: Any) -> None:
    words = ("--console", console.url, "--authority", str(console.authority), "--token-file", token)
    assert connect(*words) == ExitCode.STEP_FAILED
    assert console.seen == [("/connect/shell", "Bearer my.own.token")]
    said = capsys.readouterr().err
    assert ("code: job-connection-refused" in said, "\x1b" in said) == (True, False)


def test_nobody_without_its_authority_gets_the_token(console: Refusing, token: str, capsys: Any) -> None:
    assert connect("--console", console.url, "--token-file", token) == ExitCode.UNREACHABLE
    assert console.seen == []
    assert "code: console-unreachable" in capsys.readouterr().err


def test_a_console_that_is_not_there(token: str, capsys: Any) -> None:
    (port,) = free_ports(1)
    assert connect("--console", f"https://127.0.0.1:{port}", "--token-file", token) == ExitCode.UNREACHABLE
    assert "code: console-unreachable" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["http://console", "console", "https://", "https://console/path", "ftp://console"])
def test_an_address_without_tls_is_refused(url: str, token: str) -> None:
    assert connect("--console", url, "--token-file", token) == ExitCode.USAGE


@pytest.mark.parametrize("content", [b"", b"two words", b"\xff", b"x" * 40_000])
def test_a_file_without_a_token_is_refused(content: bytes, token: str, capsys: Any) -> None:
    Path(token).write_bytes(content)
    assert connect("--console", "https://localhost:1", "--token-file", token) == ExitCode.USAGE
    assert "code: token-file-unreadable" in capsys.readouterr().err


def test_a_file_without_certificates_is_no_authority(token: str, capsys: Any) -> None:
    words = ("--console", "https://localhost:1", "--token-file", token, "--authority", token)
    assert connect(*words) == ExitCode.USAGE
    assert "code: authority-unreadable" in capsys.readouterr().err


def test_a_site_without_isolated_groups_opens_none(folder: str, world: World, token: str, capsys: Any) -> None:
    config = Path(folder) / "config.yaml"
    config.write_text(f"{config.read_text()}\ngroup_isolation: false\n")
    assert connect("--site", folder, "--token-file", token) == ExitCode.USAGE
    assert "code: web-pages-closed" in capsys.readouterr().err
