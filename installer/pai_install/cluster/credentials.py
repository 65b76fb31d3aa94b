"""Identities of requests to the API server as HTTP headers: tokens and impersonation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pai_install.cluster.client import Impersonation
from pai_install.errors import PaiError

# Tokens of service accounts have some 1,500 bytes, tokens of identity providers up to some 16,000
_LARGEST_TOKEN = 64 * 1024


class Credentials(Protocol):
    """What authenticates a request besides a client certificate."""

    def token(self) -> str:
        """Returns the bearer token, or "" for none. Raises PaiError if it cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class NoToken:
    """The client certificate of the connection, or nothing."""

    def token(self) -> str:
        """No token."""
        return ""


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A token. It is in no repr."""

    text: str = field(repr=False)

    def token(self) -> str:
        """The token. Raises PaiError for text that is no token."""
        if not self.text or not self.text.isascii() or any(one.isspace() for one in self.text):
            raise PaiError(
                "cannot use the bearer token: it is empty, or has spaces or characters outside ASCII",
                code="token-invalid",
                remedy="request a new token",
            )
        return self.text


class TokenFile:
    """A token in a file, which is read again when the file changes, as the kubelet renews projected tokens."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[tuple[int, ...], str] = ((), "")

    def token(self) -> str:
        """The token of now."""
        try:
            state = self._path.stat()
            # The kubelet renews a token by another link, so the inode changes even within one tick of the clock.
            version = (state.st_mtime_ns, state.st_ino, state.st_size)
            if version != self._read[0]:
                with self._path.open("rb") as file:
                    self._read = (version, file.read(_LARGEST_TOKEN).decode("ascii", "replace").strip())
        except OSError as error:
            raise PaiError(
                f"cannot read the token {self._path}: {error.strerror}",
                code="token-unreadable",
                remedy="mount the token of the service account",
            ) from error
        return BearerToken(self._read[1]).token()


def identity_headers(credentials: Credentials, identity: Impersonation | None) -> Iterator[tuple[str, str]]:
    """Yields the headers that say who asks. Raises PaiError for a name that another identity could hide behind.

    An API server ignores an empty user and trims spaces: such a request would act as its sender.
    """
    if token := credentials.token():
        yield "Authorization", f"Bearer {token}"
    if identity is None:
        return
    yield "Impersonate-User", _name(identity.user)
    if identity.uid:
        yield "Impersonate-Uid", _name(identity.uid)
    for group in identity.groups:
        yield "Impersonate-Group", _name(group)


def _name(text: str) -> str:
    """The name as header text. HTTP libraries encode headers as Latin-1, and the API server reads UTF-8."""
    if not text or text != text.strip() or not text.isprintable():
        raise PaiError(
            f"cannot impersonate {text!r}: it is empty, or has surrounding spaces or characters that are not printable",
            code="identity-invalid",
            remedy="use the name that the API server shows",
        )
    return text.encode().decode("latin-1")
