"""Reads and writes credentials in the console's namespace, in the name of the console."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock

from pai_install.cluster.client import ApiError, ClusterClient, Patch, Select
from pai_install.users.console_rights import NAMESPACE
from pai_install.users.credentials import KIND, Credential, CredentialKind, credential_of, ref_of, secret_of
from pai_install.users.model import OWNER

# a revoked credential ends on every replica within this time
_FRESH_S = 1.5
_MOST_KEPT = 10_000
_TAKEN = "taken"


class CredentialStore:
    """Credentials of all users. Readings are kept for a moment."""

    def __init__(self, own: Callable[[], ClusterClient], clock: Callable[[], float] = time.monotonic) -> None:
        self._own, self._clock = own, clock
        self._kept: OrderedDict[tuple[CredentialKind, str], tuple[float, Credential | None]] = OrderedDict()
        self._lock = Lock()

    def find(self, kind: CredentialKind, key: str, *, fresh: bool = False) -> Credential | None:
        """The credential, or None for a missing or expired one. fresh: ask the cluster."""
        now = self._clock()
        with self._lock:
            kept = self._kept.get((kind, key))
        if kept is not None and not fresh and now - kept[0] < _FRESH_S:
            return _current(kept[1])
        (item,) = self._own().get([ref_of(kind, key)])
        found = credential_of(item) if item is not None else None
        self._keep(kind, key, found, now)
        return _current(found)

    def of_user(self, user: str, kind: CredentialKind) -> tuple[Credential, ...]:
        """All current ones of a user."""
        return tuple(one for one in self._listed(f"{KIND}={kind},{OWNER}={user}") if _current(one) is not None)

    def of_kind(self, kind: CredentialKind) -> dict[str, Credential]:
        """Key -> each current one of a kind, with one request."""
        return {one.key: one for one in self._listed(f"{KIND}={kind}") if _current(one) is not None}

    def add(self, credential: Credential) -> None:
        """Adds a new one. Raises ApiError "AlreadyExists"."""
        self._own().create([secret_of(credential)])
        self._forget(credential)

    def put(self, credential: Credential) -> None:
        """Writes one, in place of an earlier one."""
        try:
            self.add(credential)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            self.change(replace(credential, version=""))

    def change(self, credential: Credential) -> None:
        """Changes the given data of an existing one, and leaves the other.

        Raises ApiError "Conflict" after a change by another, with a version.
        """
        written = secret_of(credential)
        kept = {name: written[name] for name in ("metadata", "data")}
        self._own().patch([Patch(credential.ref, kept)])
        self._forget(credential)

    def remove(self, *credentials: Credential) -> None:
        """Removes them."""
        self._own().delete([one.ref for one in credentials])
        for one in credentials:
            self._forget(one)

    def take(self, credential: Credential) -> bool:
        """Removes one that counts once. Whether it was still there, for one taker only.

        The mark comes first: a deletion does not say whether another request deleted it.
        """
        if credential.data.get(_TAKEN):
            return False
        try:
            self.change(replace(credential, data={_TAKEN: "yes"}))
        except ApiError as error:
            if error.reason in ("Conflict", "NotFound"):
                return False
            raise
        self.remove(credential)
        return True

    def expired(self, uid_of: Callable[[str], str]) -> tuple[Credential, ...]:
        """Those that are over, or of an account that is gone. uid_of: of the account of a user, "" for none."""
        return tuple(
            one
            for one in self._listed(KIND)
            if _current(one) is None or (one.uid and "." not in one.user and uid_of(one.user) != one.uid)
        )

    def _listed(self, labels: str) -> tuple[Credential, ...]:
        (items,) = self._own().list(Select(("secrets",), NAMESPACE, labels))
        return tuple(one for item in items if (one := credential_of(item)) is not None)

    def _keep(self, kind: CredentialKind, key: str, found: Credential | None, now: float) -> None:
        with self._lock:
            self._kept[kind, key] = (now, found)
            self._kept.move_to_end((kind, key))
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)

    def _forget(self, credential: Credential) -> None:
        with self._lock:
            self._kept.pop((credential.kind, credential.key), None)


def _current(credential: Credential | None) -> Credential | None:
    if credential is None or (credential.until is not None and credential.until <= datetime.now(UTC)):
        return None
    return credential
