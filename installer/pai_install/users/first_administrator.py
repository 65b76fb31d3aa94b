"""The first administrator of the console: OpenPAI's default-pai-admin-username and -password. Pure.

The controller host has no argon2, so the password is a scrypt hash. The console replaces it at the first sign-in, and
a password that the user has already precedes it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from pai_install.site.passwords import first_password_problem
from pai_install.site.user_names import user_name, why_no_name
from pai_install.users.changes import UserGroup, joining
from pai_install.users.credentials import Credential, CredentialKind, secret_of
from pai_install.users.read import UserObjects

Object = dict[str, Any]

HASH = "hash"
_SCHEME = "scrypt"
_COST, _BLOCK, _PARALLEL, _LENGTH = 1 << 15, 8, 1, 32
_MEMORY = 64 * 1024 * 1024
_KEEP = {"pai-install/removal": "keep"}


@dataclass(frozen=True, slots=True)
class FirstAdministrator:
    """What the cluster gets of the first administrator. secret: is in no repr."""

    objects: Sequence[Object]
    secret: Object = field(repr=False)


def first_administrator(
    name: str, password: str, groups: Collection[UserGroup], salt: str
) -> FirstAdministrator | None:
    """Account and rights, and the Secret of the password with `secret_data` in place of `data`.

    None for an invalid name, a refused password, or without a group of administrators, of which `validate` warns.
    salt: a secret of the site.
    """
    user, administrators = user_name(name), [group for group in groups if group.administrators][:1]
    if why_no_name(user) or first_password_problem(user, password) or not administrators:
        return None
    objects = [_kept(one.object) for one in joining(user, administrators, UserObjects())]
    secret = secret_of(Credential(CredentialKind.FIRST, user, user, ""))
    kept = {"metadata": secret["metadata"], "type": secret["type"]}
    return FirstAdministrator(objects, {**kept, "secret_data": {HASH: _hashed(user, password, salt)}})


def _kept(item: Object) -> Object:
    """The object, which stays in the cluster when the site no longer names the user."""
    metadata = item["metadata"]
    return {**item, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **_KEEP}}}


def is_first_password(password: str, hash_text: str) -> bool:
    """Whether it is the password of a hash of this module."""
    scheme, _, rest = hash_text.partition("$")
    salt, _, expected = rest.partition("$")
    if scheme != _SCHEME or not expected:
        return False
    return hmac.compare_digest(_digest(password, salt).encode(), expected.encode())


def _hashed(user: str, password: str, salt: str) -> str:
    """The same for each plan, and another one for each site and user."""
    own = hmac.new(salt.encode(), f"first administrator {user}".encode(), hashlib.sha256).hexdigest()
    return f"{_SCHEME}${own}${_digest(password, own)}"


def _digest(password: str, salt: str) -> str:
    return hashlib.scrypt(
        password.encode(), salt=salt.encode(), n=_COST, r=_BLOCK, p=_PARALLEL, maxmem=_MEMORY, dklen=_LENGTH
    ).hex()
