"""The first administrator, as the site names it."""

from __future__ import annotations

import pytest

from pai_install.users.changes import UserGroup
from pai_install.users.first_administrator import FirstAdministrator, first_administrator, is_first_password

GROUPS = (
    UserGroup("vision", "vision"),
    UserGroup("ops", "ops", administrators=True),
    UserGroup("it", "it", administrators=True),
)
PASSWORD = "a password"


def made(name: str = "Admin", salt: str = "1") -> FirstAdministrator:
    found = first_administrator(name, PASSWORD, GROUPS, salt)
    assert found is not None
    return found


def hash_of(found: FirstAdministrator) -> str:
    text: str = found.secret["secret_data"]["hash"]
    return text


def test_it_is_an_administrator_with_a_password() -> None:
    found = made()
    assert [(one["kind"], one["metadata"]["name"]) for one in found.objects] == [
        ("ServiceAccount", "admin"),
        ("RoleBinding", "pai-user-admin"),
        ("ClusterRoleBinding", "pai-user-admin"),
    ]
    assert found.objects[1]["metadata"]["namespace"] == "ops"
    assert all(one["metadata"]["annotations"]["pai-install/removal"] == "keep" for one in found.objects)
    assert found.secret["metadata"]["name"] == "first.admin"
    assert is_first_password(PASSWORD, hash_of(found))
    assert not is_first_password("another", hash_of(found))
    assert "scrypt" not in repr(found)


def test_a_second_plan_is_the_same_and_another_site_has_another_hash() -> None:
    assert made() == made()
    assert hash_of(made(salt="2")) != hash_of(made())
    assert hash_of(made(name="root")) != hash_of(made())


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("not a name", PASSWORD),
        *(
            ("admin", word)
            for word in ("", "a", "pai", "root", "admin", "admin1", "123456", "x" * 257, "admin-password")
        ),
        ("Team_A.user", "team-a.USER"),
    ],
)
def test_there_is_none(name: str, password: str) -> None:
    assert first_administrator(name, password, GROUPS, "1") is None


def test_without_a_group_of_administrators_there_is_none() -> None:
    assert first_administrator("admin", PASSWORD, GROUPS[:1], "1") is None


@pytest.mark.parametrize("text", ["", "scrypt", "scrypt$$", "scrypt$a$b", "$argon2id$v=19$x", "md5$a$b"])
def test_another_hash_is_none(text: str) -> None:
    assert not is_first_password(PASSWORD, text)
