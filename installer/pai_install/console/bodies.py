"""Bodies of requests, with limits of size, time, and memory. A large body is read from known callers alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

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
    gates = _Gates(request, caller_of)
    try:
        body = await _in_time(request, limit, gates)
        gates.leave_large()
        yield body
    finally:
        gates.leave_large()
        gates.leave_upload()


async def _in_time(request: Request, limit: int, gates: _Gates) -> bytes:
    try:
        async with asyncio.timeout(_BODY_S) as timer:
            return await _read(request, limit, gates, timer)
    except TimeoutError as error:
        raise RestError(HTTPStatus.REQUEST_TIMEOUT, "InvalidParametersError", "the body is too slow") from error
    except ClientDisconnect as error:
        # no one reads the answer, and a trace in the log for each would fill the disk
        raise invalid("the body is not complete") from error
    except RestError as error:
        # the rest of the body would wait in memory
        error.headers["Connection"] = "close"
        raise


@dataclass
class _Gates:
    """The places of a body among others. large: while it is read. upload: until its request has an answer."""

    request: Request
    caller_of: Callable[[Request], Caller | None]
    large: str = ""
    upload: str = ""

    @property
    def services(self) -> Any:  # noqa: ANN401 - ConsoleServices imports this module's users
        return self.request.app.state.services

    async def enter(self, size: int, timer: asyncio.Timeout) -> None:
        """Takes the places of a body of so many bytes. Raises RestError for one too many, and for a stranger."""
        if size > _SMALL and not self.large:
            known = await _known(self.request, self.caller_of)
            self.services.large_bodies.enter(known)
            self.large = known
        if size > _UPLOAD and not self.upload:
            self.services.uploads.enter(self.large)
            self.upload = self.large
            timer.reschedule(asyncio.get_running_loop().time() + _UPLOAD_S)

    def leave_large(self) -> None:
        if self.large:
            self.services.large_bodies.leave(self.large)
        self.large = ""

    def leave_upload(self) -> None:
        if self.upload:
            self.services.uploads.leave(self.upload)
        self.upload = ""


async def _read(request: Request, limit: int, gates: _Gates, timer: asyncio.Timeout) -> bytes:
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise RestError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "InvalidParametersError", f"the body exceeds {limit} bytes"
            )
        await gates.enter(size, timer)
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
