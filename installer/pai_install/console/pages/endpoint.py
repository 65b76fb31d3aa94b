"""From a request of a browser to a page: the session, a thread, and errors as pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from pai_install.console.caller import CallerKind
from pai_install.console.endpoint import GUEST, ApiCall, call_of
from pai_install.console.errors import RestError, rest_error
from pai_install.console.pages.rendering import rendered
from pai_install.console.services import ConsoleServices
from pai_install.errors import PaiError

PageHandler = Callable[[ApiCall], Response]


def page(handler: PageHandler) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint of Starlette. A browser without a session goes to the sign-in, and comes back."""

    async def answer(request: Request) -> Response:
        return await run_in_threadpool(_handled, handler, request)

    return answer


def _handled(handler: PageHandler, request: Request) -> Response:
    services: ConsoleServices = request.app.state.services
    try:
        caller = next((it for one in services.page_authenticators if (it := one.authenticate(request))), GUEST)
        if caller.kind is CallerKind.GUEST:
            return _to_sign_in(request)
        services.rates.take("api", caller.name)
        return handler(call_of(services, caller, request))
    except PaiError as error:
        return _problem(rest_error(error))
    except RestError as error:
        return _to_sign_in(request) if error.code == "UnauthorizedUserError" else _problem(error)


def _to_sign_in(request: Request) -> Response:
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"/login?from={quote(f'{request.url.path}{query}', safe='')}", 303)


def _problem(error: RestError) -> Response:
    return rendered(
        "problem.html", error.status, title=error.status.phrase, caller=None, form="", problem=error.message
    )
