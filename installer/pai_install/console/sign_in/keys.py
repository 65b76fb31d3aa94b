"""The keys that sign tokens: one Secret for all replicas, with two keys while one takes over from the other."""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from threading import Lock

from pai_install.agents.common.values import InvalidJsonError, parse_object
from pai_install.cluster.client import ApiError, ClusterClient, Patch
from pai_install.console.sign_in.tokens import SigningKey
from pai_install.errors import PaiError
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, rows, text
from pai_install.users.console_rights import NAMESPACE
from pai_install.users.read import read_time

NAME = "signing"
_REF = Ref("secret", NAME, NAMESPACE)
# the longest token lasts 365 days: the key before has no token left when the next one comes
_AGE = timedelta(days=370)
# a new key signs after all replicas have read it
_RIPENING = timedelta(minutes=5)
_READ_AGAIN_S = 60.0
_LARGEST = 64 * 1024


class SigningKeys:
    """Keys of all replicas, the newest first. Deleting the Secret ends all tokens within a minute."""

    def __init__(self, own: Callable[[], ClusterClient], clock: Callable[[], float] = time.monotonic) -> None:
        self._own, self._clock = own, clock
        self._keys: tuple[SigningKey, ...] = ()
        self._read_at = -_READ_AGAIN_S
        self._lock = Lock()

    @property
    def all(self) -> Sequence[SigningKey]:
        """All keys that tokens may have. Raises NoClusterError."""
        with self._lock:
            if self._clock() - self._read_at >= _READ_AGAIN_S:
                self._keys, self._read_at = self._current(), self._clock()
            return self._keys

    @property
    def signing(self) -> SigningKey:
        """The key for new tokens."""
        keys = self.all
        ripe = [key for key in keys if datetime.now(UTC) - key.since >= _RIPENING]
        return (ripe or list(reversed(keys)))[0]

    def _current(self) -> tuple[SigningKey, ...]:
        """The keys of the cluster, with a new one where it is time. Another replica may be faster."""
        for _ in range(3):
            (item,) = self._own().get([_REF])
            keys = _keys(item) if item is not None else ()
            if keys and datetime.now(UTC) - keys[0].since < _AGE:
                return keys
            try:
                self._write(item, (_new_key(), *keys[:1]))
            except ApiError as error:
                if error.reason not in ("AlreadyExists", "Conflict", "NotFound"):
                    raise
        raise PaiError(f"cannot write the Secret {NAME} of {NAMESPACE}", code="signing-key-missing")

    def _write(self, item: JsonObject | None, keys: Sequence[SigningKey]) -> None:
        data = {"keys": base64.b64encode(_text(keys).encode()).decode()}
        if item is None:
            metadata = {"name": NAME, "namespace": NAMESPACE}
            self._own().create([{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}])
        else:
            version = {"resourceVersion": text(child(item, "metadata").get("resourceVersion"))}
            self._own().patch([Patch(_REF, {"metadata": version, "data": data})])


def _new_key() -> SigningKey:
    return SigningKey(secrets.token_hex(4), secrets.token_bytes(32), datetime.now(UTC))


def _text(keys: Sequence[SigningKey]) -> str:
    found = [{"id": one.id, "key": one.key.hex(), "since": one.since.isoformat()} for one in keys]
    return json.dumps({"keys": found})


def _keys(item: JsonObject) -> tuple[SigningKey, ...]:
    """The keys of a Secret. Without a valid one: none, and all tokens end."""
    try:
        content = parse_object(base64.b64decode(text(child(item, "data").get("keys"))), max_size=_LARGEST)
    except (InvalidJsonError, ValueError):
        return ()
    found = []
    for row in rows(content.get("keys")):
        since = read_time(text(row.get("since")))
        key = text(row.get("key"))
        if since is not None and len(key) == 64 and all(one in "0123456789abcdef" for one in key):
            found.append(SigningKey(text(row.get("id")), bytes.fromhex(key), since))
    return tuple(found)
