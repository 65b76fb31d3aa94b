"""Sign-in at the identity provider of the site, for browsers and for clients of OpenPAI."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from pai_install.console.caller import Caller, CallerKind
from pai_install.console.cookies import drop_cookie, set_cookie
from pai_install.console.endpoint import PUBLIC, ApiCall, endpoint
from pai_install.console.errors import forbidden, invalid, no_api, unauthorized
from pai_install.console.guards import in_url, origin
from pai_install.console.pages.rendering import rendered
from pai_install.console.sign_in.forms import PageEndpoint, PageHandler, PageRequest, page, sent_to
from pai_install.console.sign_in.pages import keep_session
from pai_install.console.sign_in.provider import IdentityProvider
from pai_install.console.sign_in.redirects import ReturnAddress, own_path, return_address
from pai_install.console.sign_in.service import SignInService
from pai_install.console.sign_in.sessions import COOKIE, HTTP_HOST, ProviderTokens
from pai_install.console.sign_in.tokens import jwt_content, sealed, unsealed
from pai_install.users.credentials import fingerprint

PATH = "/api/v2/authn/oidc"
# of the extension of VS Code
_OLD_PATH = "/api/v1/authn/oidc"
_PREFIX = "/rest-server"
_STATE_COOKIE, _ALLOW_COOKIE = f"{HTTP_HOST}pai-oidc", f"{HTTP_HOST}pai-allow"
_LASTS = timedelta(minutes=10)
# of the page with the form that sends the browser to a program on its own computer
_ALLOW_POLICY = (
    "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self' http://localhost:* http://127.0.0.1:* http://[::1]:*"
)


@dataclass(frozen=True)
class ProviderRoutes:
    """Routes of the identity provider. provider: None for a site without one."""

    sign_in: SignInService
    provider: IdentityProvider | None

    def login(self, given: PageRequest) -> Response:
        """Sends the browser to the provider."""
        provider, query = self._provider(given), given.request.query_params
        host = given.request.headers.get("host", "").rpartition(":")[0] or given.request.headers.get("host", "")
        if host.strip("[]") != self.sign_in.settings.names[0] and "again" not in query:
            # the provider knows one name, and cookies are for one name
            return sent_to(f"{self._origin}{_PREFIX}{PATH}/login?{urlencode({**dict(query), 'again': '1'})}")
        target = query.get("redirect_uri", "")
        if target and self._target(target) is None:
            raise invalid("redirect_uri is no address of the console, and none of a program on this computer")
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        values = {
            "state": state,
            "nonce": nonce,
            "verifier": verifier,
            "target": target,
            "from": own_path(query.get("from", "/")),
        }
        response = sent_to(provider.authorization(self._return, state, nonce, verifier))
        self._seal(response, _STATE_COOKIE, values)
        return response

    def returned(self, given: PageRequest) -> Response:
        """The browser comes back with a code."""
        provider, query = self._provider(given), given.request.query_params
        kept = self._unseal(given, _STATE_COOKIE)
        if kept is None or not hmac.compare_digest(kept["state"].encode(), query.get("state", "").encode()):
            raise unauthorized("this sign-in is too old, or began elsewhere: sign in again")
        if "code" not in query:
            raise unauthorized("the identity provider refused the sign-in: sign in again")
        tokens = provider.tokens(query["code"], self._return, kept["verifier"])
        if _nonce(tokens) != kept["nonce"]:
            raise unauthorized("the identity provider answered another sign-in: sign in again")
        caller = self.sign_in.reviews.caller(tokens.bearer)
        if caller.kind is not CallerKind.OIDC:
            raise unauthorized("the identity provider gave the token of another issuer")
        if given.session:
            self.sign_in.sessions.close(fingerprint(given.session))
        value = self.sign_in.sessions.open(caller, tokens)
        response = self._sent(caller, fingerprint(value), kept)
        keep_session(self.sign_in, response, value)
        drop_cookie(response, _STATE_COOKIE)
        return response

    def logout(self, given: PageRequest) -> Response:
        """Ends the session here and at the provider."""
        provider = self._provider(given)
        if given.session:
            self.sign_in.sessions.close(fingerprint(given.session))
        response = sent_to(provider.endpoints.logout or "/login")
        drop_cookie(response, COOKIE)
        return response

    def consent_page(self, given: PageRequest) -> Response:
        """Asks whether a program gets a token."""
        kept = self._allowed(given)
        caller = _require(given)
        response = rendered(given.frame, "allow.html", name=caller.label, address=kept["target"])
        response.headers["Content-Security-Policy"] = _ALLOW_POLICY
        return response

    def allow(self, given: PageRequest) -> Response:
        """Sends the browser to the program, with a token."""
        kept, caller = self._allowed(given), _require(given)
        address = self._target(kept["target"])
        if address is None or caller.kind is not CallerKind.OIDC:
            raise forbidden("sign in again with the identity provider")
        response = sent_to(self._with_token(address, caller, fingerprint(given.session), kept["from"]))
        drop_cookie(response, _ALLOW_COOKIE)
        return response

    def api_routes(self) -> tuple[Route, ...]:
        """Routes below OpenPAI's API."""
        return (
            *(Route(f"{path}/login", self._api(self.login), methods=["GET"]) for path in (PATH, _OLD_PATH)),
            Route(f"{PATH}/return", self._api(self.returned), methods=["GET"]),
            Route(f"{PATH}/logout", self._api(self.logout), methods=["GET"]),
        )

    def page_routes(self) -> tuple[Route, ...]:
        """Pages."""
        return (
            Route("/allow", self._page(self.consent_page), methods=["GET"]),
            Route("/allow", self._page(self.allow), methods=["POST"]),
        )

    def _sent(self, caller: Caller, session: str, kept: Mapping[str, str]) -> Response:
        """Where the browser goes after the sign-in."""
        address = self._target(kept["target"]) if kept["target"] else None
        if address is None:
            return sent_to(kept["from"])
        if address.program:
            response = sent_to("/allow")
            self._seal(response, _ALLOW_COOKIE, {"target": kept["target"], "from": kept["from"]})
            return response
        return sent_to(self._with_token(address, caller, session, kept["from"]))

    def _with_token(self, address: ReturnAddress, caller: Caller, session: str, target: str) -> str:
        values = {
            "user": caller.label,
            "token": self.sign_in.issuer.for_session(caller, session),
            "admin": "true" if caller.admin else "false",
            "from": target,
        }
        return address.with_query(**values)

    def _allowed(self, given: PageRequest) -> Mapping[str, str]:
        kept = self._unseal(given, _ALLOW_COOKIE)
        if kept is None:
            raise forbidden("no program asks for access")
        return kept

    def _seal(self, response: Response, cookie: str, values: Mapping[str, str]) -> None:
        text = sealed(cookie, values, datetime.now(UTC) + _LASTS, self.sign_in.keys.signing)
        set_cookie(response, cookie, text, int(_LASTS.total_seconds()))

    def _unseal(self, given: PageRequest, cookie: str) -> Mapping[str, str] | None:
        return unsealed(cookie, given.request.cookies.get(cookie, ""), self.sign_in.keys.all, datetime.now(UTC))

    def _target(self, word: str) -> ReturnAddress | None:
        return return_address(word, self.sign_in.settings.names, self.sign_in.settings.port)

    def _provider(self, given: PageRequest) -> IdentityProvider:
        if self.provider is None:
            raise no_api(given.request.url.path)
        return self.provider

    @property
    def _origin(self) -> str:
        settings = self.sign_in.settings
        return origin(in_url(settings.names[0]), settings.port)

    @property
    def _return(self) -> str:
        return f"{self._origin}{_PREFIX}{PATH}/return"

    def _api(self, handler: PageHandler) -> PageEndpoint:
        """A page below OpenPAI's API. Without a provider, clients get JSON."""
        return self._page(handler) if self.provider is not None else endpoint(_no_provider, PUBLIC)

    def _page(self, handler: PageHandler) -> PageEndpoint:
        return page(self.sign_in.settings, self.sign_in.browser, handler)


def _no_provider(call: ApiCall) -> Response:
    raise no_api(call.url)


def _require(given: PageRequest) -> Caller:
    if given.caller is None:
        raise unauthorized("sign in again")
    return given.caller


def _nonce(tokens: ProviderTokens) -> str:
    try:
        return str(jwt_content(tokens.bearer).get("nonce"))
    except ValueError:
        return ""
