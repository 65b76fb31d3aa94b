"""Forged tokens and addresses, and requests that hide others, as a member of a group and as nobody."""

from __future__ import annotations

import base64
import json
import socket
import time
from collections.abc import Iterator

import pytest

from pai_install.console import bodies
from tests.integration.console.conftest import HOST, PASSWORDS, Console, console, own, users
from tests.integration.console.test_attacks import HEAD, LOGIN, port, sent
from tests.integration.users.conftest import Users
from tests.stopwatch import Stopwatch

__all__ = ["console", "own", "port", "users"]
ME = "/rest-server/api/v2/tokens"


def part(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def forgeries(token: str) -> Iterator[tuple[str, str]]:
    """Name and token: none has a signature of the console over what it says."""
    header, claims, signature = token.split(".")
    padded = base64.urlsafe_b64decode(claims + "==")
    as_dora = part({**json.loads(padded), "username": "dora", "admin": True})
    kid = json.loads(base64.urlsafe_b64decode(header + "=="))["kid"]
    for algorithm in ("none", "None", "HS512", "RS256", "dir"):
        yield f"alg {algorithm}", f"{part({'alg': algorithm, 'kid': kid, 'typ': 'JWT'})}.{as_dora}."
        yield f"alg {algorithm} signed", f"{part({'alg': algorithm, 'kid': kid, 'typ': 'JWT'})}.{as_dora}.{signature}"
    key = {"kty": "oct", "k": part("key")}
    yield "own key", f"{part({'alg': 'HS256', 'kid': kid, 'typ': 'JWT', 'jwk': key})}.{as_dora}.{signature}"
    yield "key of a file", f"{part({'alg': 'HS256', 'kid': '../../dev/null', 'typ': 'JWT'})}.{as_dora}.{signature}"
    yield "key of an address", f"{part({'alg': 'HS256', 'jku': 'https://x', 'typ': 'JWT'})}.{as_dora}.{signature}"
    yield "critical", f"{part({'alg': 'HS256', 'kid': kid, 'typ': 'JWT', 'crit': ['b64'], 'b64': False})}.{claims}."
    yield "other claims", f"{header}.{as_dora}.{signature}"
    yield "no signature", f"{header}.{claims}."
    yield "two parts", f"{header}.{claims}"
    yield "five parts", f"{header}..{claims}.{signature}."
    yield "twice", f"{token}.{token}"
    yield "large", f"{header}.{claims}{'A' * 100_000}.{signature}"
    yield "letters", token.swapcase()
    yield "zero", f"{token}\x00"


def test_no_forged_token_is_anybody(console: Console) -> None:
    web, token = console.new(), console.token("alice", PASSWORDS["alice"])
    assert web.get(ME, headers={"Authorization": f"Bearer {token}"}).status_code == 200
    found = {}
    for name, forged in forgeries(token):
        for scheme in ("Bearer", "bearer", "Basic", "Token"):
            answer = web.get(ME, headers={b"Authorization": f"{scheme} {forged}".encode()})
            if answer.status_code not in (400, 401):
                found[name, scheme] = answer.status_code
    assert found == {}


def test_a_token_in_another_place_is_none(console: Console) -> None:
    token = console.token("alice", PASSWORDS["alice"])
    web = console.new()
    places = ({"Cookie": f"token={token}; session={token}"}, {"X-Access-Token": token}, {"X-Remote-User": "dora"})
    for headers in places:
        assert web.get(f"{ME}?token={token}&access_token={token}", headers=headers).status_code == 401


@pytest.mark.parametrize("name", ["alice", "bob"])
def test_a_token_of_a_kubeconfig_gives_no_more_than_its_user(console: Console, users: Users, name: str) -> None:
    """The API server decides about it, so it may be anybody's."""
    web, token = console.new(), users.of[name].token
    headers = {"Authorization": f"Bearer {token}", "Impersonate-User": "dora", "Impersonate-Group": "system:masters"}
    assert web.get("/rest-server/api/v2/users", headers=headers).status_code in (401, 403)


LOGS = "/log-manager/logs"


def test_a_log_address_is_opaque(console: Console) -> None:
    web, token = console.new(), console.token("alice", PASSWORDS["alice"])
    sealed = part({"alg": "dir", "enc": "A256GCM"})
    words = [
        *(token, "", ".", "....", "../../../etc/passwd", "%00", "A" * 20_000, f"{sealed}....", f"{sealed}..AA.AA.AA"),
        f"{part({'alg': 'dir', 'enc': 'A256GCM', 'zip': 'DEF'})}..AA.AA.AA",
        f"{part({'alg': 'none'})}.{part({'caller': {'name': 'dora'}})}.",
        f"{part({'alg': 'PBES2-HS256+A128KW', 'enc': 'A256GCM', 'p2c': 2**31, 'p2s': 'AA'})}.AA.AA.AA.AA",
    ]
    begin = time.monotonic()
    for word in words:
        answer = web.get(LOGS, params={"token": word, "namespace": "speech", "pod": "../x", "follow": "true"})
        assert answer.status_code == 401, word
    assert time.monotonic() - begin < 10


LOGIN_PAGE = f"GET /login HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode()
POST = f"POST {LOGIN} HTTP/1.1\r\n".encode()
# each is one request to some servers and two to others
HIDDEN = {
    "length-and-chunks": b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two-lengths": b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n",
    "list-of-lengths": b"Content-Length: 0, 44\r\n\r\n",
    "negative-length": b"Content-Length: -1\r\n\r\n",
    "signed-length": b"Content-Length: +5\r\n\r\n",
    "unknown-coding": b"Transfer-Encoding: xchunked\r\n\r\n",
    "two-codings": b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "space-before-colon": b"Transfer-Encoding : chunked\r\n\r\n",
    "folded": b"Transfer-Encoding:\r\n chunked\r\n\r\n",
    "tab-in-name": b"Transfer\tEncoding: chunked\r\n\r\n",
    "zero-in-name": b"X\x00Y: a\r\n\r\n",
    "return-in-value": b"X: a\rContent-Length: 44\r\n\r\n",
    "chunk-of-a-word": b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "endless-chunk": b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
}


@pytest.mark.parametrize("way", HIDDEN)
def test_a_request_hides_no_other(port: int, way: str) -> None:
    """The answer to the hidden one would go to whoever asks next through a proxy of the site."""
    host = f"Host: {HOST}\r\n".encode()
    answer = sent(port, POST + host + HIDDEN[way] + LOGIN_PAGE, wait_s=5)
    assert answer.count(b"HTTP/1.1 200") == 0, answer[:500]


@pytest.mark.parametrize(
    "line",
    [
        b"GET http://evil.example.org/login HTTP/1.1",
        b"GET //evil.example.org/login HTTP/1.1",
        b"GET /login\\..\\.. HTTP/1.1",
        b"GET /static/../../etc/passwd HTTP/1.1",
        b"GET /static/..%2f..%2f..%2fetc%2fpasswd HTTP/1.1",
        b"GET /static/%2e%2e/%2e%2e/etc/passwd HTTP/1.1",
        b"CONNECT evil.example.org:443 HTTP/1.1",
        b"TRACE / HTTP/1.1",
        b"GET /%0d%0aX:%20y HTTP/1.1",
    ],
)
def test_a_request_line_reaches_nothing_else(port: int, line: bytes) -> None:
    answer = sent(port, line + b"\r\n" + HEAD + b"\r\n")
    status = answer.split(b"\r\n")[0]
    assert b" 200" not in status, answer[:300]
    assert b" 5" not in status, answer[:300]
    assert b"root:" not in answer
    assert b"evil.example.org" not in answer


@pytest.mark.parametrize("path", [LOGIN, "/login", "/nothing", "/rest-server/api/v2/jobs"])
def test_a_slow_body_ends_the_connection(port: int, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Each one would keep memory and a file for as long as the sender likes."""
    monkeypatch.setattr(bodies, "_BODY_S", 0.5)
    request = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n"

    def send_slowly(connection: socket.socket) -> None:
        for part in (request.encode(), *[b"{"] * 300):
            connection.sendall(part)
            time.sleep(0.1)

    watch = Stopwatch()
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection, pytest.raises(ConnectionError):
        send_slowly(connection)
    assert watch.within(8)
