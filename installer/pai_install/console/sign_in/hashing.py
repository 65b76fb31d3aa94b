"""Password hashes (argon2id), and right passwords that are remembered for a moment."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.low_level import Type

from pai_install.users.credentials import REVOKED_HASH

_REMEMBERED_S = 300.0
_MOST_KEPT = 10_000
# as strong as 46 MiB and one pass, in half the time and memory: OWASP, Password Storage Cheat Sheet
_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1, type=Type.ID)
# of an unknown password, for names without one: their check takes as long
_NOBODYS = _HASHER.hash(secrets.token_urlsafe(24))


def hashed(password: str) -> str:
    """A hash with a salt of its own."""
    return _HASHER.hash(password)


def matches(password: str, hash_text: str) -> bool:
    """Whether it is the password. Without a hash it takes as long, and is none."""
    given = hash_text not in ("", REVOKED_HASH)
    try:
        return _HASHER.verify(hash_text if given else _NOBODYS, password) and given
    except (VerificationError, InvalidHashError):
        return False


class RememberedPasswords:
    """Passwords that were right: clients of OpenPAI sign in again every ten seconds.

    It keeps a hash with a key that exists in this process only. A new password has a new hash, so it never counts.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._key = clock, secrets.token_bytes(32)
        self._kept: OrderedDict[str, tuple[bytes, float]] = OrderedDict()
        self._lock = Lock()

    def has(self, name: str, password: str, hash_text: str) -> bool:
        """Whether this was the password of the name a moment ago, with the same hash in the cluster."""
        digest, until = self._kept.get(name, (b"", 0.0))
        return self._clock() < until and hmac.compare_digest(digest, self._digest(name, password, hash_text))

    def add(self, name: str, password: str, hash_text: str) -> None:
        """Remembers a right password."""
        with self._lock:
            self._kept.pop(name, None)
            self._kept[name] = (self._digest(name, password, hash_text), self._clock() + _REMEMBERED_S)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)

    def _digest(self, *parts: str) -> bytes:
        lengths = b"".join(len(part).to_bytes(4, "big") + part.encode() for part in parts)
        return hmac.digest(self._key, lengths, hashlib.sha256)
