"""Credentials of users as Secrets in the console's namespace, for the console and the controller host. Pure.

Each belongs to one account by its UID: an account of the same name that is made later has none of them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, text
from pai_install.users.console_rights import NAMESPACE
from pai_install.users.model import EXPIRES, OWNER
from pai_install.users.read import read_time

Object = dict[str, Any]

# label: the kind
KIND = "pai-install/credential"
# annotation: UID of the account
ACCOUNT = "pai-install/account"
# of a password: its hash, and since when it counts. Without a time, no token of the API counts.
HASH, SINCE = "hash", "since"
# in place of a hash: no password counts, not even that of the first administrator
REVOKED_HASH = "revoked"


class CredentialKind(StrEnum):
    """Kinds, and the first word of the name of their Secrets. FIRST: the password of the first administrator."""

    PASSWORD = "password"  # noqa: S105 - a kind, not a password
    LINK = "link"
    TOKEN = "token"  # noqa: S105 - a kind
    SESSION = "session"
    PROFILE = "profile"
    FIRST = "first"


@dataclass(frozen=True, slots=True)
class Credential:
    """One Secret. key: distinguishes it among its kind. user: its label. until: None for no end. data: texts."""

    kind: CredentialKind
    key: str
    user: str
    uid: str
    until: datetime | None = None
    data: Mapping[str, str] = field(default_factory=dict, repr=False)
    version: str = ""

    @property
    def ref(self) -> Ref:
        """Where it is."""
        return ref_of(self.kind, self.key)


def ref_of(kind: CredentialKind, key: str) -> Ref:
    """The Secret of a credential."""
    return Ref("secret", f"{kind}.{key}", NAMESPACE)


def fingerprint(secret: str) -> str:
    """The key of a credential that only its holder knows: the name of the Secret does not tell it."""
    return hashlib.sha256(secret.encode()).hexdigest()


def secret_of(credential: Credential) -> Object:
    """The Secret. With a version, the API server refuses it after a change by another."""
    notes = {ACCOUNT: credential.uid}
    if credential.until is not None:
        notes[EXPIRES] = credential.until.isoformat()
    metadata: Object = {
        "name": credential.ref.name,
        "namespace": NAMESPACE,
        "labels": {"app.kubernetes.io/managed-by": "pai-install", OWNER: credential.user, KIND: credential.kind.value},
        "annotations": notes,
    }
    # Two replicas of the console may change the same Secret at once.
    if credential.version:
        metadata["resourceVersion"] = credential.version
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        # The API server never changes the type of a Secret, so one kind cannot turn into another.
        "type": f"pai-install/{credential.kind}",
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in credential.data.items()},
    }


def credential_of(item: JsonObject) -> Credential | None:
    """The credential of a Secret, or None for any other Secret."""
    metadata = child(item, "metadata")
    labels, notes = child(metadata, "labels"), child(metadata, "annotations")
    word, _, key = text(metadata.get("name")).partition(".")
    # The name and the label must agree: a link must not count as a session.
    if word not in set(CredentialKind) or text(labels.get(KIND)) != word:
        return None
    return Credential(
        CredentialKind(word),
        key,
        text(labels.get(OWNER)),
        text(notes.get(ACCOUNT)),
        read_time(text(notes.get(EXPIRES))),
        {name: _decoded(text(value)) for name, value in child(item, "data").items()},
        text(metadata.get("resourceVersion")),
    )


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
