"""From a request of a browser to a page: the session, a thread, and errors as pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from pai_install.console.caller import Caller, CallerKind
from pai_install.console.endpoint import GUEST, ApiCall, call_of
from pai_install.console.errors import RestError, forbidden, rest_error
from pai_install.console.pages.rendering import Frame, frame_of, rendered
from pai_install.console.services import ConsoleServices
from pai_install.console.sign_in.forms import LARGEST_FORM, PageRequest, form_token, problem, sent_to
from pai_install.console.sign_in.forms import page as form_page
from pai_install.console.sign_in.sessions import COOKIE
from pai_install.errors import PaiError

PageHandler = Callable[[ApiCall], Response]
FormHandler = Callable[[ApiCall, Mapping[str, str]], Response]


def page(handler: PageHandler) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint of Starlette. A browser without a session goes to the sign-in, and comes back."""

    async def answer(request: Request) -> Response:
        return await run_in_threadpool(_handled, handler, request)

    return answer


def action(services: ConsoleServices, path: str, handler: FormHandler, largest: int = LARGEST_FORM) -> Route:
    """The route of a form that changes something. Forms of other sites are refused."""

    def handled(given: PageRequest) -> Response:
        if given.caller is None:
            return sent_to("/login")
        services.rates.take("api", given.caller.name)
        return handler(call_of(services, given.caller, given.request, given.file), given.form)

    def caller_of(request: Request) -> Caller | None:
        return page_caller(services, request)

    return Route(path, form_page(services.settings, caller_of, handled, largest), methods=["POST"])


def require_administrator(call: ApiCall) -> None:
    """Raises RestError for anybody but an administrator: the API server has to permit lists of all jobs."""
    if not call.caller.admin or call.services.model.visible(call.caller) is not None:
        raise forbidden("this page is for administrators")


def shown(call: ApiCall, template: str, status: int = 200, **values: Any) -> Response:  # noqa: ANN401 - any value
    """A page for the caller."""
    return rendered(frame(call), template, status, **values)


def frame(call: ApiCall) -> Frame:
    """What is around the content of a page for the caller."""
    return frame_of(call.headers, call.query, call.url, call.services.settings, call.caller, form_token(_session(call)))


def _session(call: ApiCall) -> str:
    return cookie_parser(call.headers.get("cookie", "")).get(COOKIE, "")


def page_caller(services: ConsoleServices, request: Request) -> Caller | None:
    return next((it for one in services.page_authenticators if (it := one.authenticate(request))), None)


def _handled(handler: PageHandler, request: Request) -> Response:
    services: ConsoleServices = request.app.state.services
    caller = GUEST
    try:
        caller = page_caller(services, request) or GUEST
        if caller.kind is CallerKind.GUEST:
            return _to_sign_in(request)
        services.rates.take("api", caller.name)
        return handler(call_of(services, caller, request))
    except PaiError as error:
        return _problem(services, caller, request, rest_error(error))
    except RestError as error:
        refused = error.code == "UnauthorizedUserError"
        return _to_sign_in(request) if refused else _problem(services, caller, request, error)


def _problem(services: ConsoleServices, caller: Caller, request: Request, error: RestError) -> Response:
    known = None if caller.kind is CallerKind.GUEST else caller
    form = form_token(request.cookies.get(COOKIE, ""))
    around = frame_of(request.headers, request.query_params, request.url.path, services.settings, known, form)
    return problem(around, error)


def _to_sign_in(request: Request) -> Response:
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"/login?from={quote(f'{request.url.path}{query}', safe='')}", 303)
