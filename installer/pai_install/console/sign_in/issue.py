"""Issues, lists, and revokes tokens of the API."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from pai_install.console.caller import Caller, CallerKind
from pai_install.console.errors import RestError, forbidden, invalid
from pai_install.console.settings import SignInSettings
from pai_install.console.sign_in.authenticators import CLAIMED_WITHIN, REVOKED, UNCLAIMED, TokenAuthenticator
from pai_install.console.sign_in.keys import SigningKeys
from pai_install.console.sign_in.store import CredentialStore
from pai_install.console.sign_in.tokens import TokenClaims, TokenKind, jwt_content, signed, without_signature
from pai_install.users.credentials import Credential, CredentialKind
from pai_install.users.model import ACCOUNT_PREFIX

SHORTEST_S = 60
_CONTENT = "token"
_MOST = 50
_GUEST_S = 3600
_NOT_YOURS = "this is no token of yours"


@dataclass(frozen=True)
class TokenIssuer:
    """Tokens for programs, and for clients of OpenPAI that sign in with a password."""

    keys: SigningKeys
    store: CredentialStore
    authenticator: TokenAuthenticator
    settings: SignInSettings

    def for_password(self, caller: Caller, expiration_s: int | None) -> str:
        """A token after a sign-in. It is not stored: old clients sign in every ten seconds. Raises RestError.

        expiration_s: shortened to the site's limit, because clients of OpenPAI ask for fixed times.
        """
        longest = self.settings.session_hours * 3600
        seconds = longest if expiration_s is None else min(expiration_s, longest)
        if seconds < SHORTEST_S:
            raise invalid(f"expiration is a number of seconds from {SHORTEST_S}")
        return self._signed(self._claims(TokenKind.PASSWORD, caller, timedelta(seconds=seconds)))

    def for_session(self, caller: Caller, session: str) -> str:
        """A token that stands for a session of an identity provider: it ends with the session.

        It travels in an address, which others may read later: it ends without a use within a minute.
        """
        lasting = timedelta(hours=self.settings.session_hours)
        claims = replace(self._claims(TokenKind.SESSION, caller, lasting), session=session)
        data = {UNCLAIMED: (claims.issued + CLAIMED_WITHIN).isoformat()}
        self.store.add(Credential(CredentialKind.TOKEN, claims.id, caller.label, caller.uid, claims.until, data))
        return self._signed(claims)

    def for_guest(self) -> str:
        """A token without any right, for clients that want one before they ask anything."""
        guest = Caller("", "", CallerKind.GUEST)
        return self._signed(self._claims(TokenKind.GUEST, guest, timedelta(seconds=_GUEST_S)))

    def for_application(self, caller: Caller) -> str:
        """A token for a program, with a mark in the cluster. Raises RestError."""
        if not caller.name.startswith(ACCOUNT_PREFIX):
            raise forbidden(
                "application tokens are for users of this cluster: pass the token of your identity provider, "
                "or ask an administrator for a user of the program"
            )
        if len(self._marks(caller)) >= _MOST:
            raise invalid(f"you have {_MOST} application tokens: revoke one first")
        claims = self._claims(TokenKind.APPLICATION, caller, timedelta(days=self.settings.token_days))
        token = self._signed(claims)
        data = {_CONTENT: without_signature(token)}
        self.store.add(Credential(CredentialKind.TOKEN, claims.id, caller.label, caller.uid, claims.until, data))
        return token

    def listed(self, caller: Caller) -> Sequence[str]:
        """The application tokens of a user, without their signatures."""
        return [found for one in self._marks(caller) if (found := one.data.get(_CONTENT, ""))]

    def revoke(self, caller: Caller, token: str) -> None:
        """Revokes a token of the caller. Without its signature: an application token. Raises RestError."""
        if token.endswith("."):
            self._revoke_mark(caller, token)
            return
        try:
            claims = self.authenticator.claims(token)
        except RestError as error:
            raise forbidden(_NOT_YOURS) from error
        if (claims.user, claims.uid) != (caller.label, caller.uid):
            raise forbidden(_NOT_YOURS)
        if claims.kind is TokenKind.APPLICATION:
            self._revoke_mark(caller, token)
        elif claims.kind is TokenKind.SESSION:
            self.authenticator.sessions.close(claims.session)
        else:
            mark = Credential(CredentialKind.TOKEN, claims.id, claims.user, claims.uid, claims.until, {REVOKED: "yes"})
            self.store.put(mark)

    def _revoke_mark(self, caller: Caller, token: str) -> None:
        try:
            key = str(jwt_content(token).get("jti"))
        except ValueError as error:
            raise forbidden(_NOT_YOURS) from error
        found = next((one for one in self._marks(caller) if one.key == key), None)
        if found is None:
            raise forbidden(_NOT_YOURS)
        self.store.remove(found)

    def _marks(self, caller: Caller) -> Sequence[Credential]:
        marks = self.store.of_user(caller.label, CredentialKind.TOKEN)
        return [one for one in marks if one.uid == caller.uid and _CONTENT in one.data]

    def _claims(self, kind: TokenKind, caller: Caller, lasting: timedelta) -> TokenClaims:
        now = datetime.now(UTC)
        mark = secrets.token_hex(16)
        return TokenClaims(kind, caller.label, caller.uid, mark, now, now + lasting, admin=caller.admin)

    def _signed(self, claims: TokenClaims) -> str:
        return signed(claims, self.keys.signing)
