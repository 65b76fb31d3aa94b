"""Requests of pages with their form, and protection from other sites."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from urllib.parse import parse_qsl

from python_multipart import FormParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import Field, File, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from pai_install.console.bodies import received_body
from pai_install.console.caller import Caller
from pai_install.console.errors import RestError, forbidden, invalid, rest_error
from pai_install.console.guards import is_own
from pai_install.console.pages.rendering import Frame, frame_of, rendered
from pai_install.console.settings import ConsoleSettings
from pai_install.console.sign_in.sessions import COOKIE, HTTP_HOST
from pai_install.errors import PaiError
from pai_install.users.credentials import fingerprint

# of a browser without a session: it protects the forms of sign-in
FORM_COOKIE = f"{HTTP_HOST}pai-form"
LARGEST_FORM = 128 * 1024
_MOST_FIELDS = 200
_MOST_TEXT = 2 * 1024 * 1024


@dataclass(frozen=True)
class PageRequest:
    """A request for a page. caller: None without a session. file: what was sent with the form, b"" for nothing."""

    settings: ConsoleSettings
    request: Request
    form: Mapping[str, str]
    caller: Caller | None
    file: bytes = field(default=b"", repr=False)

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

    @property
    def frame(self) -> Frame:
        """What is around the content of its page. A page after a form is open under an address of its own."""
        request = self.request
        path, settings = request.url.path, self.settings
        return frame_of(request.headers, request.query_params, path, settings, self.caller, self.form_token)


PageHandler = Callable[[PageRequest], Response]
PageEndpoint = Callable[[Request], Awaitable[Response]]


def page(
    settings: ConsoleSettings,
    caller_of: Callable[[Request], Caller | None],
    handler: PageHandler,
    largest: int = LARGEST_FORM,
) -> PageEndpoint:
    """An endpoint of Starlette for a page. A request that changes anything has to come from a page of the console."""

    def handled(request: Request, body: bytes) -> Response:
        given = PageRequest(settings, request, {}, None)
        try:
            form, file = _form(body, request.headers.get("content-type", ""))
            given = replace(given, form=form, file=file, caller=caller_of(request))
            if request.method not in ("GET", "HEAD"):
                _require_own(given)
            return handler(given)
        except PaiError as error:
            return problem(given.frame, rest_error(error))
        except RestError as error:
            return problem(given.frame, error)

    async def answer(request: Request) -> Response:
        try:
            async with received_body(request, largest, caller_of) as body:
                return await run_in_threadpool(handled, request, body)
        except RestError as error:
            return problem(PageRequest(settings, request, {}, None).frame, error)

    return answer


def problem(frame: Frame, error: RestError) -> Response:
    """A page that says why there is no other one."""
    # the address of a form has no page in another language
    response = rendered(
        replace(frame, path="/", query=(), placed=False), "problem.html", error.status, problem=error.message
    )
    response.headers.update(error.headers)
    return response


def form_token(cookie: str) -> str:
    """The token of forms for a cookie. It does not tell the cookie."""
    return fingerprint(f"form:{cookie}") if cookie else ""


def fresh_form(given: PageRequest) -> tuple[str, str]:
    """The cookie that protects forms of a browser without a session, and the token for it."""
    cookie = given.request.cookies.get(FORM_COOKIE, "") or secrets.token_urlsafe(24)
    return cookie, form_token(cookie)


def sent_to(address: str) -> RedirectResponse:
    """The browser goes there with GET."""
    return RedirectResponse(address, 303)


def _form(body: bytes, content_type: str) -> tuple[Mapping[str, str], bytes]:
    """The fields of a form, and the content of its file. Raises RestError."""
    kind, options = parse_options_header(content_type)
    if kind == b"multipart/form-data":
        return _multipart(body, options.get(b"boundary", b""))
    _require_short(len(body))
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)), b""
    except ValueError as error:
        raise invalid("cannot read the form") from error


def _multipart(body: bytes, boundary: bytes) -> tuple[Mapping[str, str], bytes]:
    fields: list[Field] = []
    files: list[File] = []
    try:
        # the whole body is in memory already, so its file stays there
        parser = FormParser(
            "multipart/form-data", fields.append, files.append, boundary=boundary,
            config={"MAX_MEMORY_FILE_SIZE": len(body) + 1, "MAX_FIELDS": _MOST_FIELDS},
        )  # fmt: skip
        parser.write(body)
        parser.finalize()
        form = {(one.field_name or b"").decode(): (one.value or b"").decode() for one in fields}
    except (FormParserError, ValueError) as error:
        raise invalid("cannot read the form") from error
    _require_short(sum(len(one) for one in form.values()))
    if not files:
        return form, b""
    files[0].file_object.seek(0)
    return form, files[0].file_object.read()


def _require_short(size: int) -> None:
    """Raises RestError for more text than a job file has: a file of the form alone may be larger."""
    if size > _MOST_TEXT:
        raise RestError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "InvalidParametersError", f"the form exceeds {_MOST_TEXT} bytes"
        )


def _require_own(given: PageRequest) -> None:
    """Raises RestError for a request from another site."""
    if not is_own(given.request.headers):
        raise forbidden("this request comes from another site")
    expected = given.form_token
    if not expected or not hmac.compare_digest(expected.encode(), given.form.get("form", "").encode()):
        raise forbidden("this form is too old: open the page again")
