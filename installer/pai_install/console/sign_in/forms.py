"""Pages of sign-in: requests with their form, protection from other sites, templates, and cookies."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from pai_install.console.caller import Caller
from pai_install.console.endpoint import read_body
from pai_install.console.errors import RestError, forbidden, invalid, rest_error
from pai_install.console.settings import ConsoleSettings
from pai_install.console.sign_in.sessions import COOKIE
from pai_install.errors import PaiError
from pai_install.users.credentials import fingerprint

# of a browser without a session: it protects the forms of sign-in
FORM_COOKIE = "__Host-pai-form"
_LARGEST_FORM, _MOST_FIELDS = 128 * 1024, 20


@dataclass(frozen=True)
class PageRequest:
    """A request for a page. caller: None without a session."""

    settings: ConsoleSettings
    request: Request
    form: Mapping[str, str]
    caller: Caller | None

    @property
    def address(self) -> str:
        """Of the sender."""
        return self.request.client.host if self.request.client else ""

    @property
    def session(self) -> str:
        """The cookie of the session."""
        return self.request.cookies.get(COOKIE, "")

    @property
    def form_token(self) -> str:
        """The token of forms in this browser, "" before its first page."""
        return form_token(self.session if self.caller is not None else self.request.cookies.get(FORM_COOKIE, ""))


PageHandler = Callable[[PageRequest], Response]
PageEndpoint = Callable[[Request], Awaitable[Response]]


def page(
    settings: ConsoleSettings, caller_of: Callable[[Request], Caller | None], handler: PageHandler
) -> PageEndpoint:
    """An endpoint of Starlette for a page. A request that changes anything has to come from a page of the console."""

    def handled(request: Request, body: bytes) -> Response:
        try:
            given = PageRequest(settings, request, _form(body), caller_of(request))
            if request.method not in ("GET", "HEAD"):
                _require_own(given)
            return handler(given)
        except PaiError as error:
            raise rest_error(error) from error

    async def answer(request: Request) -> Response:
        try:
            return await run_in_threadpool(handled, request, await read_body(request, _LARGEST_FORM))
        except RestError as error:
            return message("Sign-in failed", error.message, error.status, error.headers)

    return answer


def form_token(cookie: str) -> str:
    """The token of forms for a cookie. It does not tell the cookie."""
    return fingerprint(f"form:{cookie}") if cookie else ""


def rendered(template: str, status: int = 200, **values: object) -> HTMLResponse:
    """A page."""
    return HTMLResponse(_templates().get_template(template).render(problem="", **values), status)


def with_problem(template: str, error: RestError, **values: object) -> HTMLResponse:
    """The page again, with what was wrong."""
    content = _templates().get_template(template).render(problem=error.message, **values)
    return HTMLResponse(content, error.status, headers=error.headers)


def message(title: str, text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> HTMLResponse:
    """A page with one message."""
    content = _templates().get_template("message.html").render(title=title, problem="", message=text)
    return HTMLResponse(content, status, headers=dict(headers or {}))


def fresh_form(given: PageRequest) -> tuple[str, str]:
    """The cookie that protects forms of a browser without a session, and the token for it."""
    cookie = given.request.cookies.get(FORM_COOKIE, "") or secrets.token_urlsafe(24)
    return cookie, form_token(cookie)


def set_cookie(response: Response, name: str, value: str, seconds: int) -> None:
    """A cookie for this host alone, which no script reads and no other site sends."""
    response.set_cookie(name, value, max_age=seconds, path="/", secure=True, httponly=True, samesite="lax")


def drop_cookie(response: Response, name: str) -> None:
    """Ends a cookie."""
    response.delete_cookie(name, path="/", secure=True, httponly=True, samesite="lax")


def sent_to(address: str) -> RedirectResponse:
    """The browser goes there with GET."""
    return RedirectResponse(address, 303)


def _form(body: bytes) -> Mapping[str, str]:
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError as error:
        raise invalid("cannot read the form") from error


def _require_own(given: PageRequest) -> None:
    """Raises RestError for a request from another site."""
    port = "" if given.settings.port == 443 else f":{given.settings.port}"
    own = {f"https://{f'[{name}]' if ':' in name else name}{port}" for name in given.settings.names}
    if given.request.headers.get("origin", "") not in own:
        raise forbidden("this request comes from another site")
    expected = given.form_token
    if not expected or not hmac.compare_digest(expected.encode(), given.form.get("form", "").encode()):
        raise forbidden("this form is too old: open the page again")


@cache
def _templates() -> Environment:
    loader = PackageLoader("pai_install.console.sign_in", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
