"""Password hashes, and passwords that nobody can have."""

from __future__ import annotations

import time

import pytest

from pai_install.console.sign_in import hashing
from pai_install.console.sign_in.hashing import RememberedPasswords, hashed, matches
from pai_install.site.passwords import password_problem

PASSWORD = "correct horse battery"


def test_a_hash_is_argon2id_with_19_mib() -> None:
    found = hashed(PASSWORD)
    assert found.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert found != hashed(PASSWORD)
    assert matches(PASSWORD, found)
    assert not matches("correct horse battery ", found)


def test_no_hash_matches_nothing_and_takes_as_long() -> None:
    found = hashed(PASSWORD)

    def seconds(hash_text: str) -> float:
        found = []
        for _ in range(6):
            begin = time.process_time()
            assert not matches("wrong", hash_text)
            found.append(time.process_time() - begin)
        return min(found)

    with_hash, without = seconds(found), seconds("")
    assert 0.4 < without / with_hash < 2.5
    assert not matches("wrong", "no hash at all")


@pytest.mark.parametrize(
    "password", ["admin-password", "pai-secret", "Admin-Password", "password", "short", "", "x" * 257]
)
def test_a_password_that_nobody_can_have(password: str) -> None:
    assert password_problem(password)


def test_a_password_for_anybody() -> None:
    assert password_problem(PASSWORD) == ""
    assert password_problem("nonadminTestUser") == ""


def test_a_right_password_is_remembered_for_five_minutes() -> None:
    now = [0.0]
    found = RememberedPasswords(lambda: now[0])
    found.add("alice", PASSWORD, "hash")
    assert found.has("alice", PASSWORD, "hash")
    assert not found.has("alice", "wrong", "hash")
    assert not found.has("bob", PASSWORD, "hash")
    assert not found.has("alice", PASSWORD, "of a new password")
    assert not found.has("alice" + PASSWORD[0], PASSWORD[1:], "hash")
    now[0] = 301
    assert not found.has("alice", PASSWORD, "hash")


def test_what_is_remembered_says_nothing_of_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "_MOST_KEPT", 3)
    found = RememberedPasswords()
    for number in range(10):
        found.add(f"user-{number}", PASSWORD, "hash")
    assert len(found._kept) == 3
    assert PASSWORD not in repr(vars(found))
