"""Tokens of the API, and forged ones."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pai_install.console.sign_in.tokens import (
    SigningKey,
    TokenClaims,
    TokenKind,
    is_own_token,
    read_token,
    signed,
    without_signature,
)

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
KEY = SigningKey("k1", b"1" * 32, NOW)
OLD = SigningKey("k0", b"0" * 32, NOW - timedelta(days=400))
CLAIMS = TokenClaims(TokenKind.PASSWORD, "alice", "uid-1", "mark", NOW, NOW + timedelta(hours=1))


def part(content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def content_of(token: str) -> dict[str, Any]:
    found = token.split(".")[1]
    decoded: dict[str, Any] = json.loads(base64.urlsafe_b64decode(found + "=" * (-len(found) % 4)))
    return decoded


def forged(header: dict[str, Any], content: dict[str, Any], key: bytes, digest: Any = hashlib.sha256) -> str:
    text = f"{part(header)}.{part(content)}"
    signature = base64.urlsafe_b64encode(hmac.digest(key, text.encode(), digest)).decode().rstrip("=")
    return f"{text}.{signature}"


def test_a_token_says_who_it_is_for() -> None:
    token = signed(CLAIMS, KEY)
    assert read_token(token, (KEY,), NOW) == CLAIMS
    assert is_own_token(token)
    content = content_of(token)
    assert (content["username"], content["application"], content["exp"]) == (
        "alice",
        False,
        int(CLAIMS.until.timestamp()),
    )


@pytest.mark.parametrize("kind", TokenKind)
def test_every_kind_is_read_as_it_was_written(kind: TokenKind) -> None:
    claims = replace(CLAIMS, kind=kind, session="key" if kind is TokenKind.SESSION else "", admin=True)
    assert read_token(signed(claims, KEY), (KEY,), NOW) == claims


def test_the_key_before_counts_until_it_is_dropped() -> None:
    token = signed(CLAIMS, OLD)
    assert read_token(token, (KEY, OLD), NOW) == CLAIMS
    assert read_token(token, (KEY,), NOW) is None


def test_a_token_ends() -> None:
    assert read_token(signed(CLAIMS, KEY), (KEY,), CLAIMS.until) is None


def test_without_its_signature_it_is_of_no_use() -> None:
    token = signed(CLAIMS, KEY)
    assert token.startswith(without_signature(token))
    assert read_token(without_signature(token), (KEY,), NOW) is None


GOOD = content_of(signed(CLAIMS, KEY))
HEADER = {"alg": "HS256", "kid": "k1", "typ": "JWT"}
ATTACKS = {
    "no algorithm": f"{part({'alg': 'none', 'kid': 'k1', 'typ': 'JWT'})}.{part(GOOD)}.",
    "no algorithm in other letters": forged({**HEADER, "alg": "nOnE"}, GOOD, KEY.key),
    "another algorithm with the same key": forged({**HEADER, "alg": "HS512"}, GOOD, KEY.key, hashlib.sha512),
    "an algorithm with a public key": forged({**HEADER, "alg": "RS256"}, GOOD, KEY.key),
    "another key": forged(HEADER, GOOD, b"2" * 32),
    "an empty key": forged(HEADER, GOOD, b""),
    "a key that it brings": forged({**HEADER, "jwk": {"kty": "oct", "k": "Mg"}}, GOOD, b"2"),
    "a header beside the known ones": forged({**HEADER, "jku": "https://evil.example.org/keys"}, GOOD, KEY.key),
    "no key ID": forged({"alg": "HS256", "typ": "JWT"}, GOOD, KEY.key),
    "the key ID of another file": forged({**HEADER, "kid": "../../dev/null"}, GOOD, b""),
    "another issuer": forged(HEADER, {**GOOD, "iss": "https://sso.example.org"}, KEY.key),
    "an unknown kind": forged(HEADER, {**GOOD, "kind": "root"}, KEY.key),
    "no end": forged(HEADER, {k: v for k, v in GOOD.items() if k != "exp"}, KEY.key),
    "an end that is a text": forged(HEADER, {**GOOD, "exp": "never"}, KEY.key),
    "an end beyond all times": forged(HEADER, {**GOOD, "exp": 10**30}, KEY.key),
    "an end that is true": forged(HEADER, {**GOOD, "exp": True}, KEY.key),
    "a list as user": forged(HEADER, {**GOOD, "username": ["alice"]}, KEY.key),
    "a list as content": forged(HEADER, [GOOD], KEY.key),  # type: ignore[arg-type]
    "five parts": "a.b.c.d.e",
    "nothing": "..",
    "a large text": "a" * 10_000_000,
}


@pytest.mark.parametrize("what", ATTACKS)
def test_a_forged_token_is_none(what: str) -> None:
    assert read_token(ATTACKS[what], (KEY, OLD), NOW) is None


def test_changed_content_breaks_the_signature() -> None:
    header, _, signature = signed(CLAIMS, KEY).split(".")
    other = part({**GOOD, "username": "root", "admin": True})
    assert read_token(f"{header}.{other}.{signature}", (KEY,), NOW) is None


def test_a_token_of_a_kubeconfig_is_not_ours() -> None:
    assert not is_own_token(forged({"alg": "RS256"}, {"iss": "https://kubernetes.default.svc"}, b"1"))
    assert not is_own_token("opaque")
