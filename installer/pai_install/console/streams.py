"""Lines of a growing log as server-sent events. A thread reads, since clients of the cluster block."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Event, Lock, Thread

from anyio import CancelScope, to_thread
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from pai_install.cluster.client import Cancellation
from pai_install.console.errors import RestError
from pai_install.errors import PaiError

_LOG = logging.getLogger("pai_install.console")
_COMMENT_S = 15.0
# a caller who lost a right is out after this time, and that of a watch
_LOOK_S = 0.5
# lines that wait for a slow reader. The reader of the cluster waits then, too.
_WAITING = 32
# characters of a line. A longer one is divided, because lines without an end would fill the memory
_LONGEST = 16 * 1024
MAX_OF_CALLER, MAX_OF_ALL = 64, 512


@dataclass
class StreamGate:
    """Counts the streams of each caller and of all. what: they are too many of."""

    most: int = MAX_OF_CALLER
    most_of_all: int = MAX_OF_ALL
    what: str = "followed logs"
    _open: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def enter(self, who: str) -> None:
        """Counts a stream. Raises RestError for one too many."""
        with self._lock:
            if self._open[who] >= self.most or self._open.total() >= self.most_of_all:
                raise RestError(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequestsError", f"too many {self.what}")
            self._open[who] += 1

    @contextmanager
    def held(self, who: str) -> Iterator[None]:
        """Counts a stream until the end of the block. Raises RestError for one too many."""
        self.enter(who)
        try:
            yield
        finally:
            self.leave(who)

    @property
    def open(self) -> int:
        """The number of open streams."""
        with self._lock:
            return self._open.total()

    def leave(self, who: str) -> None:
        """A stream ended."""
        with self._lock:
            self._open[who] -= 1
            if self._open[who] <= 0:
                del self._open[who]


class EventResponse(StreamingResponse):
    """Server-sent events. ended: called once at the end, also of an answer that never began.

    A cancelled answer leaves its generator to the collector of garbage, which may come much later.
    """

    def __init__(self, content: AsyncGenerator[str, None], ended: Callable[[], None]) -> None:
        super().__init__(content, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._content, self._ended = content, ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()
            with CancelScope(shield=True):
                await self._content.aclose()


class _Reader:
    """Reads lines in a thread."""

    def __init__(self, follow: Callable[[Cancellation], Iterator[str]]) -> None:
        self._follow, self._cancellation = follow, Cancellation()
        self._loop = asyncio.get_running_loop()
        self._closed = Event()
        self.queue: asyncio.Queue[str | None] = asyncio.Queue(_WAITING)
        Thread(target=self._read, name="log", daemon=True).start()

    def close(self) -> None:
        """Ends the request. A thread that waits for room goes on, and ends."""
        self._closed.set()
        self._cancellation.cancel()
        # A thread may wait for room in the queue, and would never see that it is to end.
        while not self.queue.empty():
            self.queue.get_nowait()

    async def lines(self) -> list[str | None]:
        """The next line, None for the end, and nothing after some time without a line."""
        try:
            return [await asyncio.wait_for(self.queue.get(), _LOOK_S)]
        except TimeoutError:
            return []

    def _read(self) -> None:
        try:
            for line in self._follow(self._cancellation):
                if self._closed.is_set():
                    return
                for start in range(0, max(len(line), 1), _LONGEST):
                    self._put(line[start : start + _LONGEST])
        except (PaiError, OSError, ValueError) as error:  # a cancelled TLS connection raises the last
            _LOG.info("a log ended: %s", error)
        finally:
            if not self._closed.is_set():
                self._put(None)

    def _put(self, line: str | None) -> None:
        # result() waits until there is room, so a slow browser slows the reader and fills no memory.
        asyncio.run_coroutine_threadsafe(self.queue.put(line), self._loop).result()


async def events(
    follow: Callable[[Cancellation], Iterator[str]], still: Callable[[], bool]
) -> AsyncGenerator[str, None]:
    """Server-sent events: one for each line, a comment now and then, and "end" after the log.

    still: whether the caller may go on. It runs in a thread. Without "end", browsers ask again, and learn why not.
    """
    reader = _Reader(follow)
    looked = output = time.monotonic()
    try:
        while True:
            waiting = await reader.lines()
            now = time.monotonic()
            if now - looked >= _LOOK_S:
                looked = now
                if not await to_thread.run_sync(still):
                    return
            for line in waiting:
                output = now
                yield "event: end\ndata: \n\n" if line is None else _event(line)
                if line is None:
                    return
            if now - output >= _COMMENT_S:
                output = now
                # A comment shows proxies and browsers that a quiet log is still open.
                yield ":\n\n"
    finally:
        reader.close()


def _event(line: str) -> str:
    """A line is one field: a return in it would begin another."""
    return f"data: {line.replace(chr(13), ' ').replace(chr(10), ' ')}\n\n"
