"""A stand-in for a directory of people that speaks OpenID Connect: says where its key is, and signs what it is told."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.internet.authority import Authority


class Issuer:
    """authority: PEM of who signed its certificate. failing: it grants nothing, and each answer is a 503."""

    client = "pai"

    def __init__(self, place: str, authority: str) -> None:
        self.url, self.authority = f"https://{place}", authority
        # code or refresh token -> claims, PKCE challenge, redirect
        self._grants: dict[str, tuple[dict[str, Any], str, str]] = {}
        self.lasting_s = 3600
        self.failing = False
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def token(self, **claims: Any) -> str:
        """A token for an hour with these claims beside what each has; they count before that."""
        now = int(time.time())
        return self._signed({"iss": self.url, "aud": self.client, "iat": now, "exp": now + self.lasting_s, **claims})

    def code(self, challenge: str, redirect: str, **claims: Any) -> str:
        """What the browser brings back after a person signed in here."""
        code = secrets.token_hex(8)
        self._grants[code] = (claims, challenge, redirect)
        return code

    def granted(self, asked: dict[str, str]) -> dict[str, Any] | None:
        """The answer to a request for tokens, or None for a refusal. A code and a refresh token count once."""
        key = asked.get("code") or asked.get("refresh_token", "")
        claims, challenge, redirect = self._grants.pop(key, ({}, "", ""))
        if not claims or asked.get("client_id") != self.client:
            return None
        if "code" in asked:
            digest = hashlib.sha256(asked.get("code_verifier", "").encode()).digest()
            if _text(digest) != challenge or asked.get("redirect_uri") != redirect:
                return None
        refresh = self.code("", "", **{name: value for name, value in claims.items() if name != "nonce"})
        return {"id_token": self.token(**claims), "access_token": "x", "refresh_token": refresh, "token_type": "Bearer"}

    def revoke(self) -> None:
        """All codes and refresh tokens end."""
        self._grants.clear()

    def forged(self, **claims: Any) -> str:
        """As `token`, signed by another."""
        other = Issuer("", "")
        other.url = self.url
        return other.token(**claims)

    def answers(self) -> dict[str, Any]:
        """Path -> what it says there."""
        numbers = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1", "n": _number(numbers.n), "e": _number(numbers.e)}
        described = {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/keys",
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "scopes_supported": ["openid", "offline_access"],
            "end_session_endpoint": f"{self.url}/logout",
            "id_token_signing_alg_values_supported": ["RS256"],
        }
        return {"/.well-known/openid-configuration": described, "/keys": {"keys": [key]}}

    def _signed(self, claims: dict[str, Any]) -> str:
        words = [_text(json.dumps(one).encode()) for one in ({"alg": "RS256", "kid": "1"}, claims)]
        signature = self._key.sign(".".join(words).encode(), padding.PKCS1v15(), hashes.SHA256())
        return ".".join([*words, _text(signature)])


@contextmanager
def issuing(folder: Path, host: str = "localhost") -> Iterator[Issuer]:
    """An issuer that answers until the end of the block. host: a name or an address of this machine."""
    authority = Authority("sso", folder)
    answers: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path)
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if issuer.failing:
                self.send_error(503)
                return
            found = issuer.granted(dict(parse_qsl(body))) if self.path == "/token" else None
            self.send_response(400 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(found or {"error": "invalid_grant"}).encode())

        def log_message(self, *words: object) -> None:
            del words

    server = ThreadingHTTPServer((host, 0), Handler)
    server.socket = authority.serve([host]).wrap_socket(server.socket, server_side=True)
    issuer = Issuer(f"{host}:{server.server_port}", authority.pem)
    answers |= issuer.answers()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _number(value: int) -> str:
    return _text(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")
