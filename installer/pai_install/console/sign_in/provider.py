"""An identity provider with OpenID Connect: authorization code flow with PKCE."""

from __future__ import annotations

import base64
import hashlib
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, HTTPSConnection
from threading import Lock
from typing import Any
from urllib.parse import urlencode, urlsplit

from pai_install.agents.common.values import InvalidJsonError, parse_object
from pai_install.console.errors import RestError, unauthorized
from pai_install.console.settings import OidcSettings
from pai_install.console.sign_in.sessions import ProviderTokens

_DISCOVERY = "/.well-known/openid-configuration"
_TIMEOUT_S, _LARGEST = 10.0, 1024 * 1024
_DISCOVERED_S = 3600.0
# a provider that did not answer is asked again after this time
_AWAY_S = 10.0
_OFFLINE = "offline_access"


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Addresses of a provider. logout: "" for none. offline: it gives refresh tokens for a scope of their own."""

    authorization: str
    token: str
    logout: str = ""
    offline: bool = False


class IdentityProvider:
    """The provider of the site. The console keeps no keys of it: the API server checks its tokens."""

    def __init__(self, settings: OidcSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._clock = settings, clock
        self._found: Endpoints | None = None
        self._until = 0.0
        # why the provider does not answer, and when to ask it again
        self._away, self._again_at, self._turns = "", 0.0, Lock()

    def authorization(self, redirect: str, state: str, nonce: str, verifier: str) -> str:
        """The address where a person signs in. Raises RestError."""
        offline = (_OFFLINE,) if self.endpoints.offline else ()
        values = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": redirect,
            "scope": " ".join(dict.fromkeys((*self._settings.scopes, *offline))),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge_of(verifier),
            "code_challenge_method": "S256",
        }
        target = self.endpoints.authorization
        return f"{target}{'&' if '?' in target else '?'}{urlencode(values)}"

    def tokens(self, code: str, redirect: str, verifier: str) -> ProviderTokens:
        """Tokens for a code. Raises RestError."""
        return self._request_tokens(
            {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "code_verifier": verifier}
        )

    def renewed(self, refresh: str) -> ProviderTokens:
        """Tokens for a refresh token. Raises RestError."""
        return self._request_tokens({"grant_type": "refresh_token", "refresh_token": refresh})

    @property
    def endpoints(self) -> Endpoints:
        """Addresses of the provider, as it describes itself. Raises RestError."""
        # without a lock: threads that wait for it would wait for the timeout of each other
        found = self._found
        if found is None or self._clock() > self._until:
            found = self._found = self._discover()
            self._until = self._clock() + _DISCOVERED_S
        return found

    def _discover(self) -> Endpoints:
        issuer = self._settings.issuer
        found = self._json("GET", f"{issuer.rstrip('/')}{_DISCOVERY}", None, {})
        if found.get("issuer") != issuer:
            raise unavailable(f"it is another issuer than {issuer}")
        addresses = [found.get(name) for name in ("authorization_endpoint", "token_endpoint")]
        if not all(isinstance(one, str) and one.startswith("https://") for one in addresses):
            raise unavailable("it has no authorization code flow over HTTPS")
        logout = found.get("end_session_endpoint")
        secure = isinstance(logout, str) and logout.startswith("https://")
        scopes = found.get("scopes_supported")
        offline = isinstance(scopes, list) and _OFFLINE in scopes
        return Endpoints(str(addresses[0]), str(addresses[1]), str(logout) if secure else "", offline)

    def _request_tokens(self, values: Mapping[str, str]) -> ProviderTokens:
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        fields = {**values, "client_id": self._settings.client_id}
        if (secret := self._secret()) is not None:
            fields["client_secret"] = secret
        found = self._json("POST", self.endpoints.token, urlencode(fields).encode(), headers)
        bearer, refresh = found.get("id_token"), found.get("refresh_token", "")
        if not isinstance(bearer, str) or not isinstance(refresh, str):
            raise unavailable("it gave no ID token")
        return ProviderTokens(bearer, refresh)

    def _secret(self) -> str | None:
        path = self._settings.client_secret
        return path.read_text(encoding="utf-8").strip() if path is not None else None

    def _json(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Mapping[str, Any]:
        """The answer of one request. Raises RestError."""
        self._require_turn()
        try:
            status, content = self._response(method, url, body, headers)
        except (OSError, HTTPException, ValueError) as error:
            self._away, self._again_at = str(error) or type(error).__name__, self._clock() + _AWAY_S
            raise unavailable(self._away) from error
        self._away = ""
        if status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise unauthorized("the identity provider refuses this sign-in: sign in again")
        if status != HTTPStatus.OK:
            raise unavailable(f"it answers {status}")
        try:
            return parse_object(content, max_size=_LARGEST)
        except InvalidJsonError as error:
            raise unavailable(str(error)) from error

    def _require_turn(self) -> None:
        """After a failure, one request at a time asks: each of the others would hold a thread until its timeout."""
        with self._turns:
            if not self._away:
                return
            if self._clock() < self._again_at:
                raise unavailable(self._away)
            self._again_at = self._clock() + _TIMEOUT_S + _AWAY_S

    def _response(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Status and body, without redirects."""
        parts = urlsplit(url)
        context = ssl.create_default_context(cafile=self._settings.authority)
        path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
        connection = HTTPSConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT_S, context=context)
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read(_LARGEST + 1)
        finally:
            connection.close()


def challenge_of(verifier: str) -> str:
    """The PKCE challenge of a verifier (S256)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def unavailable(why: str) -> RestError:
    """A provider that does not do its part."""
    return RestError(
        HTTPStatus.BAD_GATEWAY, "UnknownError", f"cannot sign in at the identity provider: {why}. Try again later"
    )
