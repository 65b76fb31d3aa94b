"""Numbers of the console for Prometheus, whatever senders write."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from pai_install.console.metrics import RequestCounter, RequestMetrics, create_metrics

COUNT = "pai_console_requests_total"
SECONDS = "pai_console_request_duration_seconds"


class Clock:
    """Goes on by a step with each look."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def measured(metrics: RequestMetrics, prefix: str = "/rest-server/") -> TestClient:
    def answer(request: Request) -> Response:
        if request.url.path.endswith("broken"):
            raise RuntimeError
        return PlainTextResponse("ok")

    methods = ["GET", "POST", "BREW"]
    app = Starlette(routes=[Route("/{path:path}", answer, methods=methods)])
    return TestClient(RequestCounter(app, metrics, prefix), raise_server_exceptions=False)


def numbers(metrics: RequestMetrics, **gauges: int) -> dict[str, float]:
    page = TestClient(create_metrics(metrics, lambda: gauges)).get("/metrics")
    assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
    rows = (line.rpartition(" ") for line in page.text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in rows}


def test_requests_errors_and_seconds() -> None:
    metrics = RequestMetrics(Clock(0.1))
    web = measured(metrics)
    for path in ("/", "/rest-server/api/v2/jobs", "/rest-server/broken"):
        web.get(path)
    web.post("/")
    found = numbers(metrics, streams=3, sessions=7)
    assert found[f'{COUNT}{{part="page",method="GET",code="200"}}'] == 1
    assert found[f'{COUNT}{{part="page",method="POST",code="200"}}'] == 1
    assert found[f'{COUNT}{{part="api",method="GET",code="500"}}'] == 1
    assert found[f'{SECONDS}_sum{{part="api"}}'] == pytest.approx(0.2)
    buckets = [found[f'{SECONDS}_bucket{{part="api",le="{bound}"}}'] for bound in ("0.05", "0.2", "1.0", "5.0", "+Inf")]
    assert buckets == [0, 2, 2, 2, 2]
    assert found[f'{SECONDS}_count{{part="api"}}'] == 2
    assert (found["pai_console_streams"], found["pai_console_sessions"]) == (3, 7)


def test_foreign_words_make_no_series() -> None:
    metrics = RequestMetrics()
    web = measured(metrics)
    for number in range(50):
        web.request(f"M{number}", f"/x{number}\u00e9", headers={"host": f"h{number}"})
    web.request("BREW", '/a"} 1')
    found = [name for name in numbers(metrics) if name.startswith(COUNT)]
    assert len(found) == 2
    assert all('method="other"' in name for name in found)


def test_the_whole_of_the_api() -> None:
    metrics = RequestMetrics()
    measured(metrics, "").get("/api/v2/jobs")
    assert f'{COUNT}{{part="api",method="GET",code="200"}}' in numbers(metrics)


def test_nothing_yet() -> None:
    assert numbers(RequestMetrics(), streams=0) == {"pai_console_streams": 0}
