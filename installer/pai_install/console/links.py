"""Addresses of logs that work without a header: a sealed request of a caller, for some minutes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from pai_install.agents.common.values import InvalidJsonError, child, number, parse_object, text
from pai_install.console.caller import Caller, CallerKind
from pai_install.console.openpai.json_text import json_text
from pai_install.errors import ExitCode, PaiError

LASTING_S = 600
_HEADER = {"alg": "dir", "enc": "A256GCM"}
_PURPOSE = b"pai-install console: addresses of logs\n"
_MAX_LINK = 16 * 1024


@dataclass(frozen=True, slots=True)
class LogRequest:
    """The log of a container. record: ConfigMap with its last lines, for a deleted pod. tail: lines, -1 for all.

    container: "" for the main one.
    """

    namespace: str
    pod: str
    tail: int = -1
    previous: bool = False
    record: str = ""
    container: str = ""


@dataclass(frozen=True)
class LinkSealer:
    """Seals requests with a key that all replicas have. The content is secret: it may have the caller's own token."""

    key_file: Path
    clock: Callable[[], float] = field(default=time.time, repr=False)

    def seal(self, caller: Caller, request: LogRequest) -> str:
        """The sealed request."""
        content = {
            "until": int(self.clock()) + LASTING_S,
            "caller": {
                "name": caller.name,
                "label": caller.label,
                "kind": caller.kind.value,
                "uid": caller.uid,
                "groups": list(caller.groups),
                "admin": caller.admin,
                # the token of a session may end before the address does
                "bearer": "" if caller.session else caller.bearer,
                "session": caller.session,
            },
            "log": {
                "namespace": request.namespace,
                "pod": request.pod,
                "tail": request.tail,
                "previous": request.previous,
                "record": request.record,
                "container": request.container,
            },
        }
        return jwe.encrypt_compact(_HEADER, json_text(content).encode(), self._key)

    def open(self, sealed: str) -> tuple[Caller, LogRequest] | None:
        """The caller and the request, or None for a link that is expired or not of this console.

        A caller with a session has no token here.
        """
        # Before decryption: an address of any length costs CPU otherwise.
        if len(sealed) > _MAX_LINK:
            return None
        try:
            content = parse_object(
                jwe.decrypt_compact(sealed, self._key, algorithms=list(_HEADER.values())).plaintext or b""
            )
        except (JoseError, InvalidJsonError, ValueError):
            return None
        if (number(content.get("until")) or 0) < self.clock():
            return None
        who, log = child(content, "caller"), child(content, "log")
        caller = Caller(
            name=text(who.get("name")),
            label=text(who.get("label")),
            kind=CallerKind(text(who.get("kind"))),
            uid=text(who.get("uid")),
            groups=tuple(map(str, who.get("groups") or ())),
            admin=who.get("admin") is True,
            bearer=text(who.get("bearer")),
            session=text(who.get("session")),
        )
        tail = number(log.get("tail"))
        return caller, LogRequest(
            namespace=text(log.get("namespace")),
            pod=text(log.get("pod")),
            tail=-1 if tail is None else tail,
            previous=log.get("previous") is True,
            record=text(log.get("record")),
            container=text(log.get("container")),
        )

    @cached_property
    def _key(self) -> OctKey:
        try:
            content = self.key_file.read_bytes()
        except OSError as error:
            raise PaiError(
                f"cannot read the signing key of the console: {error.strerror}",
                code="signing-key-unreadable",
                remedy="run pai-install apply",
                exit_code=ExitCode.USAGE,
            ) from error
        return OctKey.import_key(hashlib.sha256(_PURPOSE + content).digest())
