"""OpenPAI's routes of sign-in and tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pai_install.console.caller import CallerKind
from pai_install.console.endpoint import PEOPLE, PUBLIC, SIGNED_IN, ApiCall, endpoint
from pai_install.console.errors import forbidden, invalid
from pai_install.console.sign_in.service import SignInService

_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 20
_SMALL = 16 * 1024


def fields(call: ApiCall) -> Mapping[str, Any]:
    """The fields of a form or of a JSON object. Raises RestError."""
    if call.content_type != _FORM:
        return call.json()
    try:
        return dict(parse_qsl(call.body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError as error:
        raise invalid("cannot read the form") from error


def word(found: Mapping[str, Any], name: str) -> str:
    """A text, "" for a missing one. Raises RestError for anything else."""
    value = found.get(name, "")
    if value is None:
        return ""
    if not isinstance(value, str):
        raise invalid(f"{name} is a text")
    return value


@dataclass(frozen=True)
class TokenRoutes:
    """Sign-in with a password, and tokens."""

    sign_in: SignInService

    def info(self, call: ApiCall) -> Response:
        """The way to sign in."""
        del call
        oidc = self.sign_in.settings.oidc is not None
        kind, way, method = ("OIDC", "oidc", "get") if oidc else ("basic", "basic", "post")
        return JSONResponse({"authn_type": kind, "loginURI": f"/api/v2/authn/{way}/login", "loginURIMethod": method})

    def login(self, call: ApiCall) -> Response:
        """A token for name and password."""
        found = fields(call)
        name, password = word(found, "username"), word(found, "password")
        if not name and not password and self.sign_in.settings.oidc is not None:
            # the extension of VS Code wants a token before it learns that people sign in elsewhere
            return self._answer("", self.sign_in.issuer.for_guest(), admin=False)
        if not self.sign_in.settings.sign_in.passwords:
            raise forbidden("passwords are disabled: sign in with the identity provider")
        expiration = _seconds(found.get("expiration"))
        user = self.sign_in.passwords.sign_in(name, password, call.address)
        caller = self.sign_in.users.caller(user, CallerKind.PASSWORD)
        return self._answer(user, self.sign_in.issuer.for_password(caller, expiration), admin=caller.admin)

    def logout(self, call: ApiCall) -> Response:
        """Revokes the token of the request."""
        self.sign_in.issuer.revoke(call.caller, _own_token(call))
        return JSONResponse({"message": "Logout successfully"})

    def tokens(self, call: ApiCall) -> Response:
        """The application tokens of the caller."""
        return JSONResponse({"tokens": self.sign_in.issuer.listed(call.caller)})

    def application(self, call: ApiCall) -> Response:
        """A token for a program."""
        return JSONResponse({"token": self.sign_in.issuer.for_application(call.caller), "application": True})

    def revoke(self, call: ApiCall) -> Response:
        """Revokes a token of the caller."""
        self.sign_in.issuer.revoke(call.caller, call.path["token"])
        return JSONResponse({"message": "revoke successfully"})

    def check(self, call: ApiCall) -> Response:
        """The token of the request is valid: otherwise the answer was an error."""
        del call
        return JSONResponse({"message": "Token is valid."})

    def routes(self) -> tuple[Route, ...]:
        """All routes, for both versions."""
        login = endpoint(self.login, PUBLIC, _SMALL)
        found = [
            Route("/api/v2/authn/info", endpoint(self.info, PUBLIC), methods=["GET"]),
            Route("/api/v2/authn/basic/login", login, methods=["POST"]),
            Route("/api/v2/authn/basic/logout", endpoint(self.logout, PEOPLE), methods=["DELETE"]),
            Route("/api/v1/token", login, methods=["POST"]),
        ]
        for base in ("/api/v2/tokens", "/api/v1/token"):
            found += [
                Route(base, endpoint(self.tokens, PEOPLE), methods=["GET"]),
                Route(f"{base}/check", endpoint(self.check, SIGNED_IN), methods=["GET"]),
                Route(f"{base}/application", endpoint(self.application, PEOPLE, _SMALL), methods=["POST"]),
                Route(f"{base}/{{token}}", endpoint(self.revoke, PEOPLE), methods=["DELETE"]),
            ]
        return tuple(found)

    @staticmethod
    def _answer(user: str, token: str, *, admin: bool) -> Response:
        content = {"user": user, "token": token, "admin": admin, "hasGitHubPAT": False}
        return JSONResponse(content, headers={"Cache-Control": "no-store"})


def _own_token(call: ApiCall) -> str:
    return call.headers.get("authorization", "").partition(" ")[2].strip()


def _seconds(value: object) -> int | None:
    """Seconds as a number or as text. Raises RestError."""
    if value is None or value == "":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        return int(value)
    raise invalid("expiration is a number of seconds")
