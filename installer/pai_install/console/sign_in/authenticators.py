"""From the credentials of a request to its sender."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from starlette.requests import HTTPConnection

from pai_install.console.caller import Caller, CallerKind
from pai_install.console.errors import unauthorized
from pai_install.console.sign_in.keys import SigningKeys
from pai_install.console.sign_in.known_users import KnownUsers
from pai_install.console.sign_in.reviews import TokenReviews
from pai_install.console.sign_in.sessions import COOKIE, Sessions
from pai_install.console.sign_in.store import CredentialStore
from pai_install.console.sign_in.tokens import TokenClaims, TokenKind, is_own_token, read_token
from pai_install.users.credentials import SINCE, Credential, CredentialKind
from pai_install.users.read import read_time

# clients of OpenPAI compare these words
INVALID_TOKEN = "Your token is invalid."  # noqa: S105 - a message
# of the data of a mark
REVOKED, UNCLAIMED = "revoked", "unclaimed"
PORTAL_COOKIE = "token"
CLAIMED_WITHIN = timedelta(seconds=60)
_GUEST = Caller("", "", CallerKind.GUEST)


def bearer_of(request: HTTPConnection) -> str:
    """The token of the header Authorization, or ""."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


@dataclass(frozen=True)
class TokenAuthenticator:
    """Tokens of the header Authorization: the console's own, and those that the API server takes."""

    keys: SigningKeys
    store: CredentialStore
    users: KnownUsers
    sessions: Sessions
    reviews: TokenReviews

    def authenticate(self, request: HTTPConnection) -> Caller | None:
        """The sender, or None without a token. Raises RestError for a wrong one."""
        token = bearer_of(request)
        return self.sender(token) if token else None

    def sender(self, token: str) -> Caller:
        """The sender of any token. Raises RestError."""
        return self.caller(token) if is_own_token(token) else self.reviews.caller(token)

    def caller(self, token: str) -> Caller:
        """The sender of a token of the console. Raises RestError."""
        claims = self.claims(token)
        if claims.kind is TokenKind.GUEST:
            return _GUEST
        if claims.kind is TokenKind.SESSION:
            found = self.sessions.caller_of(claims.session)
            if found is None:
                raise unauthorized(INVALID_TOKEN)
            return found
        kind = CallerKind.APPLICATION if claims.kind is TokenKind.APPLICATION else CallerKind.PASSWORD
        return self.users.caller(claims.user, kind)

    def claims(self, token: str) -> TokenClaims:
        """What a valid token says. Raises RestError for one that is over, revoked, or of an account that is gone."""
        claims = read_token(token, self.keys.all, datetime.now(UTC))
        if claims is None or not self._stands(claims):
            raise unauthorized(INVALID_TOKEN)
        return claims

    def _stands(self, claims: TokenClaims) -> bool:
        if claims.kind is TokenKind.GUEST:
            return True
        mark = self.store.find(CredentialKind.TOKEN, claims.id)
        if claims.kind is TokenKind.SESSION:
            return mark is None or self._claimed(mark)
        if not claims.uid or self.users.uid(claims.user) != claims.uid:
            return False
        if claims.kind is TokenKind.APPLICATION:
            return mark is not None and mark.uid == claims.uid and not mark.data.get(REVOKED)
        return mark is None and not self._older_than_password(claims)

    def _claimed(self, mark: Credential) -> bool:
        """Whether this is the first use of a token, in time. Then the mark goes."""
        until = read_time(mark.data.get(UNCLAIMED, ""))
        if until is None or until < datetime.now(UTC):
            return False
        self.store.remove(mark)
        return True

    def _older_than_password(self, claims: TokenClaims) -> bool:
        """A new password ends the tokens that the earlier one gave."""
        password = self.store.find(CredentialKind.PASSWORD, claims.user)
        since = read_time(password.data.get(SINCE, "")) if password is not None else None
        return since is None or since > claims.issued


@dataclass(frozen=True)
class CookieAuthenticator:
    """The cookie of pages. The API takes none: a page of a stranger could send it."""

    sessions: Sessions

    def authenticate(self, request: HTTPConnection) -> Caller | None:
        """The person of a session, or None for anybody else: a page then asks to sign in."""
        return self.sessions.caller(request.cookies.get(COOKIE, ""))


@dataclass(frozen=True)
class PortalAuthenticator:
    """The cookie of OpenPAI's web portal, which has a token of the API."""

    tokens: TokenAuthenticator

    def authenticate(self, request: HTTPConnection) -> Caller | None:
        """The sender, or None without the cookie. Raises RestError for a wrong one."""
        token = request.cookies.get(PORTAL_COOKIE, "")
        return self.tokens.sender(token) if token else None
