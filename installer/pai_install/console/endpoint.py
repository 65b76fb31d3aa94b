"""From a request to a handler: authentication, limits of the body, a thread, and errors in OpenPAI's form."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, QueryParams
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response

from pai_install.agents.common.values import InvalidJsonError, parse_object
from pai_install.cluster.client import ClusterClient
from pai_install.console.bodies import received_body
from pai_install.console.caller import Caller, CallerKind
from pai_install.console.errors import RestError, forbidden, invalid, rest_error, unauthorized
from pai_install.console.services import ConsoleServices
from pai_install.errors import PaiError

MAX_BODY = 1024 * 1024
# clients of OpenPAI compare these words
_NO_PROGRAMS = "Applications are not allowed to do this operation."
ADMINISTRATORS_ONLY = "Non-admin is not allow to do this operation."


@dataclass(frozen=True, slots=True)
class RouteAccess:
    """Who may use an endpoint, and how often. public: no credentials. programs: application tokens, too.

    cookies: also of browsers. Such an endpoint changes nothing, because a page of a stranger could send them. rate: ""
    for no limit.
    """

    public: bool = False
    programs: bool = True
    administrators: bool = False
    cookies: bool = False
    rate: str = "api"


@dataclass(frozen=True)
class ApiCall:
    """A request for a handler. caller: a guest on public endpoints."""

    services: ConsoleServices
    caller: Caller
    method: str
    path: Mapping[str, str]
    query: QueryParams
    headers: Headers
    url: str
    address: str
    content_type: str
    body: bytes

    @property
    def client(self) -> ClusterClient:
        """A client that acts as the sender."""
        return self.services.clients.of(self.caller)

    def json(self) -> Mapping[str, Any]:
        """The body as a JSON object. Raises RestError."""
        try:
            found = parse_object(self.body or b"{}", max_size=MAX_BODY)
            json.dumps(found, ensure_ascii=False).encode()  # half a character can be written nowhere
        except (InvalidJsonError, UnicodeEncodeError) as error:
            raise invalid(f"cannot read the body: {error}") from error
        return found


Handler = Callable[[ApiCall], Response]
GUEST = Caller("", "", CallerKind.GUEST)
SIGNED_IN, PUBLIC = RouteAccess(), RouteAccess(public=True)
LISTS, SUBMISSIONS = RouteAccess(rate="list"), RouteAccess(rate="submit")
PEOPLE, ADMINISTRATORS = RouteAccess(programs=False), RouteAccess(administrators=True)
BROWSERS = RouteAccess(cookies=True)
PERSONAL_ADMINISTRATORS = RouteAccess(programs=False, administrators=True)


def endpoint(
    handler: Handler, access: RouteAccess = SIGNED_IN, max_body: int = MAX_BODY
) -> Callable[..., Awaitable[Response]]:
    """An endpoint of Starlette. The handler runs in a thread, since clients of the cluster block."""

    async def answer(request: Request) -> Response:
        try:
            async with received_body(request, max_body, _known_caller) as body:
                return await run_in_threadpool(_handled, handler, access, request, body)
        except RestError as error:
            return error_response(error)

    return answer


def _handled(handler: Handler, access: RouteAccess, request: Request, body: bytes) -> Response:
    services: ConsoleServices = request.app.state.services
    try:
        # clients send an old token even where they ask for a new one
        caller = GUEST if access.public else caller_of(services, request, cookies=access.cookies)
        require_access(caller, access)
        # After authentication: the limit belongs to a person, not to an address that many share.
        if access.rate:
            services.rates.take(access.rate, caller.name or (request.client.host if request.client else ""))
        return handler(call_of(services, caller, request, body))
    except PaiError as error:
        raise rest_error(error) from error


def call_of(services: ConsoleServices, caller: Caller, request: Request, body: bytes = b"") -> ApiCall:
    """A request as handlers take it."""
    return ApiCall(
        services,
        caller,
        request.method,
        {name: str(value) for name, value in request.path_params.items()},
        request.query_params,
        request.headers,
        request.url.path,
        request.client.host if request.client else "",
        request.headers.get("content-type", "").partition(";")[0].strip().lower(),
        body,
    )


def _known_caller(request: Request) -> Caller:
    return caller_of(request.app.state.services, request)


def caller_of(services: ConsoleServices, request: HTTPConnection, *, cookies: bool = False) -> Caller:
    """The sender of a request, a guest without credentials. Raises RestError for wrong ones."""
    browsers = (*services.page_authenticators, *services.portal_authenticators) if cookies else ()
    for authenticator in (*services.authenticators, *browsers):
        if (caller := authenticator.authenticate(request)) is not None:
            return caller
    return GUEST


def require_access(caller: Caller, access: RouteAccess) -> None:
    """Raises RestError for a caller that may not use an endpoint."""
    if access.public:
        return
    if caller.kind is CallerKind.GUEST:
        raise unauthorized()
    if caller.kind is CallerKind.APPLICATION and not access.programs:
        raise forbidden(_NO_PROGRAMS)
    if access.administrators and not caller.admin:
        raise forbidden(ADMINISTRATORS_ONLY)


def error_response(error: RestError) -> JSONResponse:
    """An error in OpenPAI's form."""
    return JSONResponse(error.content, error.status, headers=error.headers)
