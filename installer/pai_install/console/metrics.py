"""Numbers of the console for Prometheus: requests, time until their answers, followed logs, and sessions."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from threading import Lock

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_BOUNDS = (0.05, 0.2, 1.0, 5.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})
_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class RequestMetrics:
    """Counts answers. Labels have few values, whatever a sender writes. clock: in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._lock = Lock()
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._buckets: Counter[tuple[str, int]] = Counter()
        self._seconds: dict[str, float] = {}

    def count(self, part: str, method: str, status: int, seconds: float) -> None:
        """Counts an answer. part: "api" or "page". seconds: until the answer began."""
        # A sender could fill memory with methods of their own.
        known = method if method in _METHODS else "other"
        with self._lock:
            self._answers[part, known, status] += 1
            self._buckets[part, bisect_left(_BOUNDS, seconds)] += 1
            self._seconds[part] = self._seconds.get(part, 0.0) + seconds

    def text(self, **gauges: int) -> str:
        """All numbers in the format of Prometheus. gauges: further ones of now."""
        with self._lock:
            return "\n".join([*self._counters(), *self._durations(), *_gauges(gauges), ""])

    def _counters(self) -> Iterator[str]:
        yield "# TYPE pai_console_requests_total counter"
        for (part, method, status), number in sorted(self._answers.items()):
            yield f'pai_console_requests_total{{part="{part}",method="{method}",code="{status}"}} {number}'

    def _durations(self) -> Iterator[str]:
        name = "pai_console_request_duration_seconds"
        yield f"# TYPE {name} histogram"
        for part, seconds in sorted(self._seconds.items()):
            total = 0
            for place, bound in enumerate((*map(str, _BOUNDS), "+Inf")):
                total += self._buckets[part, place]
                yield f'{name}_bucket{{part="{part}",le="{bound}"}} {total}'
            yield f'{name}_sum{{part="{part}"}} {seconds:.6f}'
            yield f'{name}_count{{part="{part}"}} {total}'


def _gauges(gauges: dict[str, int]) -> Iterator[str]:
    for name, value in gauges.items():
        yield f"# TYPE pai_console_{name} gauge"
        yield f"pai_console_{name} {value}"


class RequestCounter:
    """Counts each answer of an application. prefix: of the API, "" where all of it is the API."""

    def __init__(self, app: ASGIApp, metrics: RequestMetrics, prefix: str) -> None:
        self._app, self._metrics, self._prefix = app, metrics, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, part = self._metrics.clock(), "api" if scope["path"].startswith(self._prefix) else "page"

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.count(part, scope["method"], message["status"], self._metrics.clock() - begin)
            await send(message)

        await self._app(scope, receive, sent)


def create_metrics(metrics: RequestMetrics, gauges: Callable[[], dict[str, int]]) -> Starlette:
    """The page that Prometheus reads, on the loopback of the machine."""

    async def page(request: Request) -> Response:
        del request
        return PlainTextResponse(metrics.text(**await run_in_threadpool(gauges)), media_type=_TYPE)

    return Starlette(routes=[Route("/metrics", page, methods=["GET"])])
