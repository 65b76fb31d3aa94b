"""One's own account: groups, password, and tokens for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus

from starlette.responses import Response
from starlette.routing import Route

from pai_install.console.endpoint import ApiCall
from pai_install.console.errors import RestError, invalid
from pai_install.console.pages.endpoint import action, page, shown
from pai_install.console.services import ConsoleServices
from pai_install.console.sign_in.forms import sent_to
from pai_install.console.sign_in.service import SignInService
from pai_install.console.sign_in.tokens import jwt_content
from pai_install.site.passwords import SHORTEST
from pai_install.users.model import ACCOUNT_PREFIX


@dataclass(frozen=True, slots=True)
class TokenRow:
    """An application token. text: without its signature, of no use to a thief."""

    text: str
    name: str
    issued: str
    until: str


def sign_in_of(call: ApiCall) -> SignInService:
    """The sign-in of the console. Raises RestError for a console without one."""
    found = call.services.sign_in
    if found is None:
        raise RestError(HTTPStatus.NOT_FOUND, "NoApiError", "this console has no sign-in")
    return found


def show_account(call: ApiCall) -> Response:
    """The account of the caller."""
    return _account(call)


def _account(call: ApiCall, problem: str = "", token: str = "", status: int = 200) -> Response:
    sign_in, caller = sign_in_of(call), call.caller
    local = caller.name.startswith(ACCOUNT_PREFIX)
    return shown(
        call,
        "account.html",
        status,
        problem=problem,
        token=token,
        local=local,
        passwords=local and sign_in.settings.sign_in.passwords,
        tokens=list(_tokens(sign_in, call)) if local else [],
        days=sign_in.settings.sign_in.token_days,
        shortest=SHORTEST,
        kind=caller.kind.value,
    )


def _tokens(sign_in: SignInService, call: ApiCall) -> Iterator[TokenRow]:
    for text in sign_in.issuer.listed(call.caller):
        content = jwt_content(text)
        yield TokenRow(text, str(content.get("jti"))[:8], _day(content.get("iat")), _day(content.get("exp")))


def _day(seconds: object) -> str:
    if not isinstance(seconds, int | float):
        return ""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"


def change_password(call: ApiCall, form: Mapping[str, str]) -> Response:
    """Sets the password. All sessions end, this one too."""
    try:
        if form.get("password") != form.get("again"):
            raise invalid("the two passwords differ")
        old, new = form.get("old", ""), form.get("password", "")
        sign_in_of(call).change_password(call.caller, call.address, old, new)
    except RestError as error:
        return _account(call, problem=error.message, status=error.status)
    return sent_to("/account")


def create_token(call: ApiCall, form: Mapping[str, str]) -> Response:
    """Creates a token, and shows it once."""
    del form
    try:
        token = sign_in_of(call).issuer.for_application(call.caller)
    except RestError as error:
        return _account(call, problem=error.message, status=error.status)
    return _account(call, token=token)


def revoke_token(call: ApiCall, form: Mapping[str, str]) -> Response:
    """Revokes a token of the caller."""
    try:
        sign_in_of(call).issuer.revoke(call.caller, form.get("token", ""))
    except RestError as error:
        return _account(call, problem=error.message, status=error.status)
    return sent_to("/account")


def routes(services: ConsoleServices) -> tuple[Route, ...]:
    """All routes."""
    return (
        Route("/account", page(show_account), methods=["GET"]),
        action(services, "/account/password", change_password),
        action(services, "/account/tokens", create_token),
        action(services, "/account/tokens/revoke", revoke_token),
    )
