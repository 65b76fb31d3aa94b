"""Brute force, and requests that are large, slow, or malformed, on a console that listens."""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

from pai_install.console import slow_requests
from pai_install.console.sign_in import passwords
from pai_install.console.sign_in.hashing import matches
from pai_install.console.sign_in.limits import SignInLimits
from pai_install.console.slow_requests import PromptProtocol
from tests.integration.console.conftest import HOST, PASSWORDS, Console
from tests.stopwatch import Stopwatch
from tests.waiting import until

LOGIN = "/rest-server/api/v2/authn/basic/login"


@pytest.fixture
def fresh_limits(console: Console, monkeypatch: pytest.MonkeyPatch) -> Iterator[SignInLimits]:
    """Limits that remember nothing of other tests, before and after. Their clock stands still, as on no slow host."""
    limits, now = console.sign_in.passwords.limits, time.monotonic()
    monkeypatch.setattr(limits, "_clock", lambda: now)
    for kept in (limits._names, limits._addresses):
        kept.clear()
    yield limits
    for kept in (limits._names, limits._addresses):
        kept.clear()


def test_guessing_a_password_is_slowed_down(
    console: Console, fresh_limits: SignInLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        assert console.login("carol", "wrong password")["code"] == "IncorrectPasswordError"
    answer = console.new().post(LOGIN, data={"username": "carol", "password": PASSWORDS["carol"]})
    assert (answer.status_code, answer.json()["code"]) == (429, "TooManyRequestsError")
    assert answer.headers["retry-after"] == "1"
    later = fresh_limits._clock() + 1.1
    monkeypatch.setattr(fresh_limits, "_clock", lambda: later)
    assert console.login("carol", PASSWORDS["carol"])["status"] == 200


def test_one_password_for_many_names_is_slowed_down(console: Console, fresh_limits: SignInLimits) -> None:
    found = [console.login(f"user-{number}", "Spring2026!")["status"] for number in range(31)]
    assert found == [400] * 30 + [429]


def test_other_letters_are_the_same_name(console: Console, fresh_limits: SignInLimits) -> None:
    for name in ("Carol", "CAROL", "cArol", "caRol", "carOl"):
        console.login(name, "wrong password")
    assert console.login("carol", PASSWORDS["carol"])["status"] == 429


def test_the_empty_sign_in_of_clients_locks_nobody_out(console: Console, fresh_limits: SignInLimits) -> None:
    for _ in range(100):
        assert console.login("", "")["code"] == "InvalidParametersError"
    assert console.login("alice", PASSWORDS["alice"])["status"] == 200


def test_unknown_names_take_as_long_as_known_ones(console: Console, fresh_limits: SignInLimits) -> None:
    def seconds(name: str) -> float:
        begin = time.perf_counter()
        console.login(name, "wrong password")
        return time.perf_counter() - begin

    console.login("warm-up", "wrong password")
    # in turn, and for as long as other work on this machine slows down one of them
    known = unknown = math.inf
    for number in range(12):
        known, unknown = min(known, seconds("bob")), min(unknown, seconds("nobody"))
        fresh_limits._names.clear()
        fresh_limits._addresses.clear()
        if number >= 3 and 0.4 < unknown / known < 2.5:
            return
    pytest.fail(f"{known} s for a known name, {unknown} s for an unknown one")


def test_sixty_guesses_at_once_take_four_hashes_at_a_time(
    console: Console, fresh_limits: SignInLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []
    working: list[int] = []
    most: list[int] = []

    def counted(password: str, hash_text: str) -> bool:
        working.append(1)
        most.append(len(working))
        try:
            # a slow processor: otherwise it is done before all have come
            until(lambda: found.count(429) >= 30, 60)
            return matches(password, hash_text)
        finally:
            working.pop()

    def guess(number: int) -> None:
        found.append(console.login(f"user-{number}", "wrong password")["status"])

    monkeypatch.setattr(passwords, "matches", counted)
    threads = [threading.Thread(target=guess, args=(number,)) for number in range(60)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert set(found) <= {400, 429}
    assert found.count(429) >= 30
    assert 1 <= max(most) <= 4


@pytest.fixture
def port(console: Console, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a console that listens, whose patience is short."""
    monkeypatch.setattr(slow_requests, "HEADERS_WITHIN_S", 2)
    app = console.new().app
    config = uvicorn.Config(app, port=0, http=PromptProtocol, log_config=None, lifespan="off", access_log=False)
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    yield int(listener.getsockname()[1])
    server.should_exit = True
    thread.join(10)


def sent(port: int, *parts: bytes, pause_s: float = 0.0, wait_s: float = 30) -> bytes:
    """What comes back until the connection ends. wait_s: for more of it."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait_s) as connection:
        for part in parts:
            with contextlib.suppress(OSError):
                connection.sendall(part)
            time.sleep(pause_s)
        answer = b""
        with contextlib.suppress(OSError):
            while part := connection.recv(65536):
                answer += part
        return answer


HEAD = f"Host: {HOST}\r\nConnection: close\r\n".encode()


def test_a_slow_header_ends_the_connection(port: int) -> None:
    watch = Stopwatch()
    assert sent(port, b"GET /login HTTP/1.1\r\n", b"X: ", *(b"a" for _ in range(8)), pause_s=0.3) == b""
    assert watch.within(6)
    assert sent(port) == b""


def test_a_prompt_request_is_answered(port: int) -> None:
    assert sent(port, b"GET /login HTTP/1.1\r\n" + HEAD + b"\r\n").startswith(b"HTTP/1.1 200")


def test_a_slow_answer_is_not_cut_off(port: int) -> None:
    """Two requests on one connection, with a pause that is longer than the time for headers."""
    request = f"GET /login HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        for _ in range(2):
            connection.sendall(request)
            answer = b""
            while not answer.endswith(b"</html>"):
                part = connection.recv(65536)
                assert part, "the connection ended"
                answer += part
            assert answer.startswith(b"HTTP/1.1 200")
            time.sleep(2.3)


@pytest.mark.parametrize(
    ("path", "size"),
    [(LOGIN, 17 * 1024), ("/login", 129 * 1024), ("/rest-server/api/v2/users", 1024 * 1024 + 1)],
)
def test_a_large_body_is_refused(console: Console, path: str, size: int) -> None:
    answer = console.new().post(path, content=b"a" * size, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


def test_a_large_header_is_refused(port: int) -> None:
    answer = sent(port, b"GET /login HTTP/1.1\r\n" + HEAD + b"X: " + b"a" * 200_000 + b"\r\n\r\n")
    assert answer == b"" or b" 4" in answer.split(b"\r\n")[0]


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"username": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b"\xff\xfe",
        b'{"username": "alice", "username": 5}',
        b"null",
        b'{"username": "a\\u0000b", "password": "wrong password"}',
    ],
)
def test_a_malformed_body_is_a_bad_request(console: Console, body: bytes) -> None:
    answer = console.new().post(LOGIN, content=body[: 16 * 1024], headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["code"] in ("InvalidParametersError", "NoUserError")


@pytest.mark.parametrize(
    "name", ["..%2F..%2Fnodes", "alice%2F..%2Fbob", "%2e%2e", "http:%2F%2F169.254.169.254%2F", "alice%0d%0aX: y", "%ff"]
)
def test_a_path_parameter_reaches_no_other_address(console: Console, name: str) -> None:
    """Server-side request forgery: a name in a path is a name of a user, or nothing."""
    token = console.token("dora")
    for method, path in (("GET", "/api/v2/users/{}"), ("DELETE", "/api/v2/users/{}"), ("DELETE", "/api/v2/tokens/{}")):
        found = console.ask(method, path.format(name), token)
        assert found["status"] in (400, 403, 404)


def test_two_hosts_are_refused(port: int) -> None:
    answer = sent(port, b"GET /login HTTP/1.1\r\n" + HEAD + b"Host: evil.example.org\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
