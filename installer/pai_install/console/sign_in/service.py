"""All of sign-in for one process."""

from __future__ import annotations

import logging
import secrets
import time
from dataclasses import dataclass
from http import HTTPStatus
from threading import Thread

from starlette.requests import HTTPConnection

from pai_install.console.caller import Caller, Clients
from pai_install.console.errors import RestError, forbidden
from pai_install.console.settings import ConsoleSettings
from pai_install.console.sign_in.authenticators import CookieAuthenticator, TokenAuthenticator
from pai_install.console.sign_in.issue import TokenIssuer
from pai_install.console.sign_in.keys import SigningKeys
from pai_install.console.sign_in.known_users import KnownUsers
from pai_install.console.sign_in.passwords import Passwords
from pai_install.console.sign_in.reviews import TokenReviews
from pai_install.console.sign_in.sessions import Renewal, Sessions
from pai_install.console.sign_in.store import CredentialStore
from pai_install.errors import PaiError
from pai_install.users.model import ACCOUNT_PREFIX

_LOG = logging.getLogger("pai_install.console")
_SWEPT_S = 3600.0


@dataclass(frozen=True)
class SignInService:
    """What routes of sign-in use."""

    settings: ConsoleSettings
    store: CredentialStore
    keys: SigningKeys
    users: KnownUsers
    passwords: Passwords
    reviews: TokenReviews
    sessions: Sessions
    tokens: TokenAuthenticator
    issuer: TokenIssuer

    def start(self) -> None:
        """Watches users, and removes what is over, until the process ends."""
        self.users.start()
        Thread(target=self._sweep_again, name="sweep credentials", daemon=True).start()

    def change_password(self, caller: Caller, address: str, old: str, new: str) -> None:
        """Sets the password of the caller, and ends its sessions. Raises RestError for a wrong old password."""
        if not caller.name.startswith(ACCOUNT_PREFIX):
            raise forbidden("your identity provider keeps your password")
        self.passwords.sign_in(caller.label, old, address)
        if new == old:
            return  # nothing changes, so the token of the sender stays
        self.passwords.write(caller.label, caller.uid, new)
        self.sessions.close_all(caller.label, caller.uid)

    def current(self, caller: Caller) -> Caller | None:
        """An earlier caller of now, None if it is gone, or a right of it. It may ask the cluster.

        Raises RestError and PaiError in an outage.
        """
        try:
            now = self._current(caller)
        except RestError as error:
            if error.status != HTTPStatus.UNAUTHORIZED:
                raise
            return None
        if now is None or (now.name, now.uid) != (caller.name, caller.uid):
            return None
        return now if set(caller.groups) <= set(now.groups) and (now.admin or not caller.admin) else None

    def _current(self, caller: Caller) -> Caller | None:
        if caller.session:
            # a log that grows is no use of a session
            return self.sessions.caller_of(caller.session, noted=False)
        return self.reviews.caller(caller.bearer) if caller.bearer else self.users.caller(caller.label, caller.kind)

    def sweep(self) -> None:
        """Removes credentials that are over, and those of accounts that are gone."""
        self.store.remove(*self.store.expired(self.users.uid))

    def _sweep_again(self) -> None:
        while True:
            # replicas start together, and need not do this together
            time.sleep(_SWEPT_S * (0.5 + secrets.randbelow(1000) / 1000))
            try:
                self.sweep()
            except PaiError as error:
                _LOG.warning("cannot remove expired credentials: %s", error)

    def browser(self, request: HTTPConnection) -> Caller | None:
        """The person of a session, for pages of sign-in. None also in an outage: they offer another way."""
        try:
            return self.cookies.authenticate(request)
        except RestError:
            return None

    @property
    def cookies(self) -> CookieAuthenticator:
        """Knows people of pages."""
        return CookieAuthenticator(self.sessions)


def open_sign_in(settings: ConsoleSettings, clients: Clients, renewal: Renewal | None = None) -> SignInService:
    """Sign-in over the cluster. Call `start` to watch accounts."""
    store, keys, users = CredentialStore(clients.own), SigningKeys(clients.own), KnownUsers(clients.own)
    reviews = TokenReviews(clients, users)
    sessions = Sessions(store, users, reviews, settings.sign_in, renewal)
    tokens = TokenAuthenticator(keys, store, users, sessions, reviews)
    return SignInService(
        settings,
        store,
        keys,
        users,
        Passwords(store, users, settings.sign_in.hide_users),
        reviews,
        sessions,
        tokens,
        TokenIssuer(keys, store, tokens, settings.sign_in),
    )
