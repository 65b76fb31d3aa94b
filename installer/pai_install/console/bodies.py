"""Bodies of requests, with limits of size, time, and memory. A large body is read from known callers alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from pai_install.console.caller import Caller, CallerKind
from pai_install.console.errors import RestError, invalid, rest_error, unauthorized
from pai_install.console.streams import StreamGate
from pai_install.errors import PaiError

_BODY_S = 30.0
# above it a body is large. Job files and forms are below
_SMALL = 64 * 1024


async def read_body(request: Request, limit: int, caller_of: Callable[[Request], Caller | None]) -> bytes:
    """The body of a request. Raises RestError for a large or slow one.

    caller_of: the sender, who is asked for a large body alone. It runs in a thread.
    """
    try:
        async with asyncio.timeout(_BODY_S):
            return await _read(request, limit, caller_of)
    except TimeoutError as error:
        raise RestError(HTTPStatus.REQUEST_TIMEOUT, "InvalidParametersError", "the body is too slow") from error
    except ClientDisconnect as error:
        # no one reads the answer, and a trace in the log for each would fill the disk
        raise invalid("the body is not complete") from error
    except RestError as error:
        # the rest of the body would wait in memory
        error.headers["Connection"] = "close"
        raise


async def _read(request: Request, limit: int, caller_of: Callable[[Request], Caller | None]) -> bytes:
    gate: StreamGate = request.app.state.services.large_bodies
    chunks, size, large = [], 0, ""
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                raise RestError(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "InvalidParametersError", f"the body exceeds {limit} bytes"
                )
            if size > _SMALL and not large:
                known = await _known(request, caller_of)
                gate.enter(known)
                large = known
            chunks.append(chunk)
    finally:
        if large:
            gate.leave(large)
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
