"""Bodies of requests, with limits of size, time, and memory. A large body is read from known callers alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from http import HTTPStatus

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from pai_install.console.caller import Caller, CallerKind
from pai_install.console.errors import RestError, invalid, rest_error, unauthorized
from pai_install.errors import PaiError

_BODY_S = 30.0
# above it a body is large. Job files and forms are below
_SMALL = 64 * 1024
# Above it a body has code. It is in memory several times, until the code is on a storage.
_UPLOAD, _UPLOAD_S = 4 * 1024 * 1024, 180.0


@asynccontextmanager
async def received_body(
    request: Request, limit: int, caller_of: Callable[[Request], Caller | None]
) -> AsyncIterator[bytes]:
    """The body of a request, for as long as it is in memory. Raises RestError for a large or slow one.

    caller_of: the sender, who is asked for a large body alone. It runs in a thread.
    """
    with ExitStack() as until_answered:
        yield await _in_time(request, limit, caller_of, until_answered)


async def _in_time(
    request: Request, limit: int, caller_of: Callable[[Request], Caller | None], until_answered: ExitStack
) -> bytes:
    try:
        async with asyncio.timeout(_BODY_S) as timer:
            return await _read(request, limit, caller_of, until_answered, timer)
    except TimeoutError as error:
        raise RestError(HTTPStatus.REQUEST_TIMEOUT, "InvalidParametersError", "the body is too slow") from error
    except ClientDisconnect as error:
        # no one reads the answer, and a trace in the log for each would fill the disk
        raise invalid("the body is not complete") from error
    except RestError as error:
        # the rest of the body would wait in memory
        error.headers["Connection"] = "close"
        raise


async def _read(
    request: Request,
    limit: int,
    caller_of: Callable[[Request], Caller | None],
    until_answered: ExitStack,
    timer: asyncio.Timeout,
) -> bytes:
    services = request.app.state.services
    chunks, size, known = [], 0, ""
    with ExitStack() as while_read:
        async for chunk in request.stream():
            before, size = size, size + len(chunk)
            if size > limit:
                raise RestError(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "InvalidParametersError", f"the body exceeds {limit} bytes"
                )
            if before <= _SMALL < size:
                known = await _known(request, caller_of)
                while_read.enter_context(services.large_bodies.held(known))
            if before <= _UPLOAD < size:
                until_answered.enter_context(services.uploads.held(known))
                timer.reschedule(asyncio.get_running_loop().time() + _UPLOAD_S)
            chunks.append(chunk)
    return b"".join(chunks)


async def _known(request: Request, caller_of: Callable[[Request], Caller | None]) -> str:
    """The name of the sender. Raises RestError for a stranger."""
    try:
        caller = await run_in_threadpool(caller_of, request)
    except PaiError as error:
        raise rest_error(error) from error
    if caller is None or caller.kind is CallerKind.GUEST:
        raise unauthorized()
    return caller.name
