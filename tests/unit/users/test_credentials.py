"""Credentials as Secrets and back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pai_install.site.user_names import user_name
from pai_install.users.console_rights import constrained
from pai_install.users.credentials import Credential, CredentialKind, credential_of, fingerprint, secret_of

ONE = Credential(
    CredentialKind.PASSWORD, "alice", "alice", "uid-1", datetime(2027, 1, 1, tzinfo=UTC), {"hash": "$argon2id$x"}
)


def test_a_secret_is_read_as_it_was_written() -> None:
    assert credential_of(secret_of(ONE)) == ONE


def test_its_data_is_in_no_repr() -> None:
    assert "argon2" not in repr(ONE)


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"metadata": {"name": "signing"}},
        {"metadata": {"name": "password.alice"}},
        {"metadata": {"name": "password.alice", "labels": {"pai-install/credential": "session"}}},
        {"metadata": {"name": ["x"], "labels": "y"}},
    ],
)
def test_another_secret_is_none(item: dict[str, Any]) -> None:
    assert credential_of(item) is None


def test_data_that_is_no_text_is_empty() -> None:
    item = secret_of(ONE)
    item["data"] = {"hash": "%%%", "other": "/w=="}
    found = credential_of(item)
    assert found is not None
    assert found.data == {"hash": "", "other": ""}


def test_nobody_finds_a_secret_by_its_name() -> None:
    assert fingerprint("a") == "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"


@pytest.mark.parametrize(("version", "found"), [("1.35.9", False), ("1.36.0", True), ("1.36", True), ("2.0.0", True)])
def test_the_version_decides_over_the_way_of_impersonation(version: str, found: bool) -> None:
    assert constrained(version) is found


def test_a_name_of_openpai() -> None:
    assert user_name("sdk_Test.user") == "sdk-test-user"
