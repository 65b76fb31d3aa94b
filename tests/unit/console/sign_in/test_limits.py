"""Brute force: by name, by address, and by the number of hashes."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from pai_install.console.errors import RestError
from pai_install.console.sign_in import limits
from pai_install.console.sign_in.limits import HashSlots, SignInLimits

ADDRESS = "192.0.2.1"


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def wait_of(found: SignInLimits, name: str = "alice", address: str = ADDRESS) -> int:
    """Seconds until the next try; 0 for none."""
    try:
        found.check(name, address)
    except RestError as error:
        return int(error.headers["Retry-After"]) if error.status == 429 else -1
    return 0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def found(clock: Clock) -> SignInLimits:
    return SignInLimits(clock)


def test_a_name_waits_longer_after_each_wrong_password(found: SignInLimits, clock: Clock) -> None:
    waits = []
    for _ in range(13):
        found.failed("alice", "")
        waits.append(wait_of(found, address=""))
        clock.now += 60
    assert waits == [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert wait_of(found, "bob", "") == 0


def test_a_right_password_and_time_forget(found: SignInLimits, clock: Clock) -> None:
    for _ in range(5):
        found.failed("alice", ADDRESS)
    found.succeeded("alice")
    assert wait_of(found) == 0
    for _ in range(5):
        found.failed("alice", ADDRESS)
    clock.now += 901
    found.failed("alice", ADDRESS)
    assert wait_of(found) == 0


def test_an_address_tries_thirty_passwords_a_minute(found: SignInLimits, clock: Clock) -> None:
    for number in range(30):
        assert wait_of(found, f"user-{number}") == 0
        found.failed(f"user-{number}", ADDRESS)
        clock.now += 1
    assert wait_of(found, "another") == 30
    assert wait_of(found, "another", "192.0.2.2") == 0
    clock.now += 31
    assert wait_of(found, "another") == 0


def test_an_ipv6_network_is_one_address(found: SignInLimits) -> None:
    for number in range(30):
        found.failed(f"user-{number}", f"2001:db8::{number:x}")
    assert wait_of(found, "another", "2001:db8::ffff") > 0
    assert wait_of(found, "another", "2001:db8:0:1::1") == 0


def test_an_ipv4_address_in_ipv6_is_the_same(found: SignInLimits) -> None:
    for number in range(30):
        found.failed(f"user-{number}", f"::ffff:{ADDRESS}")
    assert wait_of(found, "another") > 0


def test_memory_has_a_limit(found: SignInLimits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_MOST_KEPT", 10)
    for number in range(100):
        found.failed(f"user-{number}", f"10.0.0.{number}")
    assert len(found._names) == len(found._addresses) == 10


def test_four_hashes_at_a_time_and_a_short_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_WAIT_S", 0.05)
    slots = HashSlots(8)
    with ExitStack() as held:
        for _ in range(4):
            held.enter_context(slots.slot())
        with pytest.raises(RestError) as error, slots.slot():
            pass
        assert error.value.status == 429
    with slots.slot():
        pass


@pytest.mark.parametrize(("processors", "most"), [(1, 1), (2, 2), (3, 2), (4, 2), (6, 3), (64, 4)])
def test_few_hashes_are_made_at_once(processors: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_install.console.sign_in.limits._WAIT_S", 0.01)
    slots = HashSlots(processors)
    with ExitStack() as held:
        for _ in range(most):
            held.enter_context(slots.slot())
        with pytest.raises(RestError), slots.slot():
            pass


def test_who_does_not_fit_into_the_line_is_refused_at_once() -> None:
    slots, ready, end = HashSlots(8), threading.Barrier(5), threading.Event()

    def hold() -> None:
        with slots.slot():
            ready.wait()
            end.wait()

    def stand() -> None:
        try:
            with slots.slot():
                pass
        except RestError:
            pass

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for one in threads:
        one.start()
    ready.wait()
    line = [threading.Thread(target=stand) for _ in range(limits._WAITING)]
    for one in line:
        one.start()
    refused = 0
    for _ in range(limits._WAITING + 8):
        try:
            with slots.slot():
                pass
        except RestError:
            refused += 1
            break
    end.set()
    for one in (*threads, *line):
        one.join()
    assert refused == 1
