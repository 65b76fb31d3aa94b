"""Tokens of the API: JSON Web Tokens with HMAC-SHA256, and the keys that sign them. Pure.

Old clients decode a token to show its end, so it has this form. Nobody but the console checks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, OctKey
from joserfc.util import urlsafe_b64decode

from pai_install.agents.common.values import InvalidJsonError, parse_object

_ALGORITHM, _ISSUER = "HS256", "pai-install"
_LONGEST = 4096
# of a token of an identity provider
_LONGEST_CONTENT = 64 * 1024


class TokenKind(StrEnum):
    """What stands behind a token. SESSION: a browser session of an identity provider. GUEST: no user."""

    PASSWORD = "password"  # noqa: S105 - a kind, not a password
    APPLICATION = "application"
    SESSION = "session"
    GUEST = "guest"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """One key. since: when it began to sign."""

    id: str
    key: bytes = field(repr=False)
    since: datetime


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """What a token says. id: of its mark in the cluster. session: the key of a browser session."""

    kind: TokenKind
    user: str
    uid: str
    id: str
    issued: datetime
    until: datetime
    session: str = ""
    admin: bool = False


def signed(claims: TokenClaims, key: SigningKey) -> str:
    """The token."""
    content: dict[str, Any] = {
        "iss": _ISSUER,
        "kind": claims.kind.value,
        "username": claims.user,
        "uid": claims.uid,
        "application": claims.kind is TokenKind.APPLICATION,
        "admin": claims.admin,
        "jti": claims.id,
        # exact, so that a new password ends tokens of the same second
        "iat": claims.issued.timestamp(),
        "exp": int(claims.until.timestamp()),
    }
    if claims.session:
        content["sid"] = claims.session
    if claims.kind is TokenKind.GUEST:
        content["guest"] = True
    return _encoded(content, key)


def read_token(token: str, keys: Sequence[SigningKey], now: datetime) -> TokenClaims | None:
    """The claims of a token that one of the keys signed and that is not over, or None."""
    content = _decoded(token, keys)
    return _claims(content, now) if content is not None else None


def sealed(purpose: str, values: Mapping[str, str], until: datetime, key: SigningKey) -> str:
    """Texts that a browser keeps for the console. It can read and not change them. It is no token of the API."""
    return _encoded({"iss": f"{_ISSUER}-{purpose}", "exp": int(until.timestamp()), "values": dict(values)}, key)


def unsealed(purpose: str, text: str, keys: Sequence[SigningKey], now: datetime) -> Mapping[str, str] | None:
    """What was sealed for this purpose and is not over, or None."""
    content = _decoded(text, keys)
    if content is None or content.get("iss") != f"{_ISSUER}-{purpose}":
        return None
    until, values = content.get("exp"), content.get("values")
    if not isinstance(until, int) or until <= now.timestamp() or not isinstance(values, dict):
        return None
    return {str(name): str(value) for name, value in values.items()}


def _encoded(content: dict[str, Any], key: SigningKey) -> str:
    return jwt.encode({"alg": _ALGORITHM, "kid": key.id}, content, _jwk(key))


def _decoded(token: str, keys: Sequence[SigningKey]) -> Mapping[str, Any] | None:
    if len(token) > _LONGEST or token.count(".") != 2:
        return None
    try:
        decoded = jwt.decode(token, KeySet([_jwk(key) for key in keys]), algorithms=[_ALGORITHM])
    except (JoseError, ValueError, TypeError, KeyError, RecursionError):
        return None
    # without a key ID the library tries any key
    if decoded.header.get("kid") not in {key.id for key in keys} or set(decoded.header) != {"alg", "kid", "typ"}:
        return None
    return decoded.claims


def is_own_token(token: str) -> bool:
    """Whether a token says that the console issued it. It proves nothing."""
    try:
        return jwt_content(token).get("iss") == _ISSUER
    except ValueError:
        return False


def jwt_content(token: str) -> Mapping[str, Any]:
    """The content of a JSON Web Token, unverified. Raises ValueError."""
    parts = token.split(".")
    if len(parts) != 3:
        raise ValueError("no JSON Web Token")
    try:
        return parse_object(urlsafe_b64decode(parts[1].encode()), max_size=_LONGEST_CONTENT)
    except (InvalidJsonError, ValueError) as error:
        raise ValueError("no JSON Web Token") from error


def without_signature(token: str) -> str:
    """Enough to recognize a token, and of no use to a thief."""
    return f"{token.rpartition('.')[0]}."


def _jwk(key: SigningKey) -> OctKey:
    return OctKey.import_key(key.key, {"kid": key.id, "alg": _ALGORITHM, "use": "sig"})


def _claims(content: Mapping[str, Any], now: datetime) -> TokenClaims | None:
    texts = [content.get(name) for name in ("kind", "username", "uid", "jti")]
    times = [content.get(name) for name in ("iat", "exp")]
    if content.get("iss") != _ISSUER or not all(isinstance(one, str) for one in texts):
        return None
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in times):
        return None
    kind, user, uid, mark = map(str, texts)
    try:
        issued, until = (datetime.fromtimestamp(float(str(one)), UTC) for one in times)
    except (OverflowError, OSError, ValueError):
        return None
    if kind not in set(TokenKind) or until <= now:
        return None
    session = content.get("sid", "")
    return TokenClaims(TokenKind(kind), user, uid, mark, issued, until, str(session), bool(content.get("admin")))
