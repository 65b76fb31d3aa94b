"""The first password of the site's administrator."""

from __future__ import annotations

from typing import Any, cast

import pytest

from pai_install.console.errors import RestError
from pai_install.console.sign_in.known_users import KnownUsers
from pai_install.console.sign_in.passwords import Passwords
from pai_install.console.sign_in.store import CredentialStore
from pai_install.users import first_administrator
from pai_install.users.credentials import Credential, CredentialKind


class Stored:
    """Credentials of one user, as the store has them."""

    def __init__(self, *found: Credential) -> None:
        self.found = {one.kind: one for one in found}

    def find(self, kind: CredentialKind, key: str, *, fresh: bool = False) -> Credential | None:
        """The one of this kind."""
        del key, fresh
        return self.found.get(kind)

    def put(self, credential: Credential) -> None:
        """Keeps it."""
        self.found[credential.kind] = credential


class Admin:
    """One known user."""

    def uid(self, user: str) -> str:
        """Of everyone."""
        return f"uid of {user}"


def passwords(first: str) -> tuple[Passwords, Stored]:
    """Passwords of a cluster whose site gave this password to its administrator."""
    hash_text = first_administrator._hashed("admin", first, "salt")
    stored = Stored(Credential(CredentialKind.FIRST, "admin", "admin", "", data={"hash": hash_text}))
    users: Any = Admin()
    return Passwords(cast("CredentialStore", stored), cast("KnownUsers", users)), stored


def test_it_becomes_the_password_of_the_user() -> None:
    found, stored = passwords("given by the site")
    with pytest.raises(RestError, match=r"Password is incorrect."):
        found.sign_in("admin", "another one", "10.0.0.1")
    assert CredentialKind.PASSWORD not in stored.found
    assert found.sign_in("admin", "given by the site", "10.0.0.1") == "admin"
    assert stored.found[CredentialKind.PASSWORD].data["hash"].startswith("$argon2id$")


@pytest.mark.parametrize("password", ["admin", "123456", "admin-password"])
def test_a_refused_one_of_an_earlier_version_is_none(password: str) -> None:
    found, stored = passwords(password)
    with pytest.raises(RestError, match="choose another one"):
        found.sign_in("admin", password, "10.0.0.1")
    assert CredentialKind.PASSWORD not in stored.found
