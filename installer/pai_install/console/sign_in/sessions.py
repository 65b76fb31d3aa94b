"""Sessions of browsers: a random cookie, whose fingerprint names a Secret that all replicas read."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Protocol

from pai_install.cluster.client import ApiError
from pai_install.console.caller import Caller, CallerKind
from pai_install.console.errors import RestError, not_ready, unauthorized
from pai_install.console.settings import SignInSettings
from pai_install.console.sign_in.known_users import KnownUsers
from pai_install.console.sign_in.reviews import TokenReviews
from pai_install.console.sign_in.store import CredentialStore
from pai_install.console.sign_in.tokens import jwt_content
from pai_install.users.credentials import Credential, CredentialKind, fingerprint
from pai_install.users.read import read_time

# no script sets a cookie with this beginning: scripts of web pages in jobs run on the same host, at another port
# https://datatracker.ietf.org/doc/draft-ietf-httpbis-rfc6265bis/
HTTP_HOST = "__Host-Http-"
COOKIE = f"{HTTP_HOST}pai"
# of the data of a session
WAY, USED, BEARER, REFRESH, RENEWING = "way", "used", "bearer", "refresh", "renewing"
# the time of the last use is written at most this often
_NOTED = timedelta(minutes=5)
# a token of an identity provider is renewed this long before its end
_AHEAD = timedelta(seconds=60)
# as long as a request to the provider takes at most
_RENEWAL = timedelta(seconds=15)
_ASKED_AGAIN_S = 0.2


@dataclass(frozen=True, slots=True)
class ProviderTokens:
    """Tokens of an identity provider. refresh: "" for none."""

    bearer: str
    refresh: str = ""


class Renewal(Protocol):
    """Renews tokens at an identity provider."""

    def renewed(self, refresh: str) -> ProviderTokens:
        """New tokens. Raises RestError."""
        ...


@dataclass(frozen=True)
class Sessions:
    """All sessions. They end after some hours without use, and after some days at the latest."""

    store: CredentialStore
    users: KnownUsers
    reviews: TokenReviews
    settings: SignInSettings
    renewal: Renewal | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def open(self, caller: Caller, tokens: ProviderTokens | None = None) -> str:
        """A new session. Returns the value of its cookie. tokens: passed on to the API server."""
        value, now = secrets.token_urlsafe(32), self.now()
        data = {WAY: caller.kind.value, USED: now.isoformat()}
        if tokens is not None:
            data |= {BEARER: tokens.bearer, REFRESH: tokens.refresh}
        until = now + timedelta(hours=self.settings.session_hours)
        key = fingerprint(value)
        self.store.add(Credential(CredentialKind.SESSION, key, caller.label, caller.uid, until, data))
        return value

    def caller(self, value: str) -> Caller | None:
        """The person of a cookie, or None for a session that is over.

        Raises RestError while the session cannot be judged: a person is not signed out by an outage.
        """
        return self.caller_of(fingerprint(value)) if value else None

    def caller_of(self, key: str, *, noted: bool = True) -> Caller | None:
        """As `caller`, by the key of the session. noted: this is a use of it."""
        found = self.store.find(CredentialKind.SESSION, key)
        if found is None or self._idle(found):
            return None
        caller = self._with_bearer(found) if found.data.get(BEARER) else self._with_account(found)
        if noted and caller is not None:
            self._note(found)
        return caller

    def close(self, key: str) -> Credential | None:
        """Ends a session."""
        found = self.store.find(CredentialKind.SESSION, key, fresh=True)
        if found is not None:
            self.store.remove(found)
        return found

    def close_all(self, user: str, uid: str) -> None:
        """Ends all sessions of a user."""
        found = [one for one in self.store.of_user(user, CredentialKind.SESSION) if one.uid == uid]
        self.store.remove(*found)

    def _idle(self, session: Credential) -> bool:
        used = read_time(session.data.get(USED, ""))
        return used is None or self.now() - used > timedelta(hours=self.settings.idle_hours)

    def _with_account(self, session: Credential) -> Caller | None:
        same = session.uid and self.users.uid(session.user) == session.uid
        return self.users.caller(session.user, CallerKind.PASSWORD) if same else None

    def _with_bearer(self, session: Credential) -> Caller | None:
        try:
            current = self._renewed(session)
            caller = self.reviews.caller(current.data[BEARER])
        except RestError as error:
            if error.status != HTTPStatus.UNAUTHORIZED:
                raise
            return None
        if (caller.label, caller.uid) != (session.user, session.uid):
            return None
        return replace(caller, session=session.key)

    def _renewed(self, session: Credential) -> Credential:
        """The session with a token that still lasts. Raises RestError.

        A refresh token counts once, for all requests and replicas: a second use may end the session at the provider.
        While the provider does not answer, a token counts until its end.
        """
        if self.renewal is None or not session.data.get(REFRESH) or not self._ends(session):
            return session
        current = self.store.find(CredentialKind.SESSION, session.key, fresh=True) or session
        if not self._ends(current):
            return current
        if not self._claim(current):
            return self._renewed_by_another(current)
        try:
            tokens = self.renewal.renewed(current.data[REFRESH])
        except RestError as error:
            self._write(current, {RENEWING: ""})
            if error.status == HTTPStatus.UNAUTHORIZED or self._ends(current, ahead=timedelta()):
                raise
            return current
        refresh = tokens.refresh or current.data[REFRESH]
        changes = {BEARER: tokens.bearer, REFRESH: refresh, RENEWING: ""}
        self._write(current, changes)
        return replace(current, data={**current.data, **changes})

    def _claim(self, session: Credential) -> bool:
        """Whether this request renews the token, and no other one."""
        since = read_time(session.data.get(RENEWING, ""))
        if since is not None and self.now() - since < _RENEWAL:
            return False
        try:
            self.store.change(replace(session, data={RENEWING: self.now().isoformat()}))
        except ApiError as error:
            if error.reason in ("Conflict", "NotFound"):
                return False
            raise
        return True

    def _renewed_by_another(self, session: Credential) -> Credential:
        """The session as it is, or after the renewal if its token is over already. Raises RestError."""
        end = self.now() + _RENEWAL
        while self._ends(session, ahead=timedelta()):
            time.sleep(_ASKED_AGAIN_S)
            found = self.store.find(CredentialKind.SESSION, session.key, fresh=True)
            if found is None:
                raise unauthorized()
            session = found
            if self.now() > end or not session.data.get(RENEWING):
                break
        if self._ends(session, ahead=timedelta()):
            raise not_ready("the identity provider did not renew your sign-in")
        return session

    def _ends(self, session: Credential, ahead: timedelta = _AHEAD) -> bool:
        try:
            until = jwt_content(session.data[BEARER]).get("exp")
        except ValueError:
            return False
        return isinstance(until, int) and datetime.fromtimestamp(until, UTC) - self.now() < ahead

    def _note(self, session: Credential) -> None:
        """Writes when the session was used, now and then."""
        used = read_time(session.data.get(USED, ""))
        if used is None or self.now() - used >= _NOTED:
            self._write(session, {USED: self.now().isoformat()})

    def _write(self, session: Credential, changes: Mapping[str, str]) -> None:
        """Writes these texts alone: another replica may have changed the others."""
        try:
            self.store.change(replace(session, data=changes, version=""))
        except ApiError as error:
            if error.reason != "NotFound":
                raise
