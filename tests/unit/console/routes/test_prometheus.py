"""Queries of OpenPAI's web portal to Prometheus, and requests that look like them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from starlette.testclient import TestClient

from pai_install.console.services import ConsoleServices
from pai_install.console.settings import MonitoringSettings
from tests.ports import free_port
from tests.unit.console.conftest import signed_in
from tests.unit.console.pages.test_waiting import used

__all__ = ["used"]
BASE = "/prometheus/api/v1"
HOME = "avg(avg_over_time(task_gpu_percent[10m]) < 10) by (job_name)"
# as the page Hardware writes them into an address
NAMES = "query=node_uname_info"
USED = "node_memory_MemTotal_bytes+-+node_memory_MemFree_bytes+-+node_memory_Buffers_bytes+-+node_memory_Cached_bytes"
HARDWARE = (
    "query=100%20-%20(avg%20by%20(instance)(irate(node_cpu_seconds_total%7Bmode%3D%22idle%22%7D%5B300s%5D))%20*%20100)",
    f"query={USED}",
    "query=node_memory_MemTotal_bytes",
    "query=avg+by+(instance)(gpu_utilization)",
    "query=avg+by+(instance)(gpu_mem_utilization)",
    "query=sum+by+(instance)(rate(node_disk_read_bytes_total%5B300s%5D))",
    "query=sum+by+(instance)(rate(node_disk_written_bytes_total%5B5m%5D))",
    "query=sum+by+(instance)(rate(node_network_receive_bytes_total%5B30s%5D))",
)
ATTACKS = (
    *("up", "ALERTS", "{__name__=~'.+'}", "node_uname_info{}", "node_uname_info or up", " node_uname_info", "[RANGE]"),
    *("node_uname_info\n", "node_uname_info#", "node_memory_MemTotal_bytes offset 1d", "NODE_UNAME_INFO"),
    "sum by (instance)(rate(node_disk_read_bytes_total[RANGE]))",
    "sum by (instance)(rate(node_disk_read_bytes_total[99999s]))",
    "sum by (instance)(rate(node_disk_read_bytes_total[0s]))",
    "sum by (instance)(rate(node_disk_read_bytes_total[5y]))",
    "sum by (instance)(rate(node_disk_read_bytes_total[5m] offset 9d))",
    "sum by (instance)(rate(node_disk_read_bytes_total[5m]))or(vector(1))",
    "sum by (instance)(rate(node_disk_read_bytes_total[\u0665m]))",
    'avg(avg_over_time(task_gpu_percent{job_name="bob~hides"}[10m]) < 10) by (job_name)',
    "avg(avg_over_time(task_gpu_percent[10m]) < 10) by (username)",
    "avg(avg_over_time(task_gpu_percent[90d]) < 10) by (job_name)",
    'DCGM_FI_DEV_GPU_UTIL{namespace="nlp"}',
    *("x" * 301, "count(" * 40, ""),
)


@dataclass
class Prometheus:
    """A Prometheus with two busy groups. asked: expressions and spans of requests."""

    port: int = 0
    asked: list[dict[str, str]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)


def series(value: str, **labels: str) -> dict[str, Any]:
    return {"metric": labels, "values": [[1_767_225_600, value]]}


@contextmanager
def prometheus() -> Iterator[Prometheus]:
    made = Prometheus()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place = urlsplit(self.path)
            assert place.path == "/api/v1/query_range"
            made.asked.append({name: value for name, (value,) in parse_qs(place.query).items()})
            body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": made.rows}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.port = server.server_port
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


def with_monitoring(services: ConsoleServices, port: int) -> None:
    place = f"http://127.0.0.1:{port}"
    settings = services.settings.model_copy(
        update={"monitoring": MonitoringSettings(prometheus=place, alertmanager=place)}
    )
    object.__setattr__(services, "monitoring", replace(services, settings=settings).monitoring)


@pytest.fixture
def measured(used: TestClient, services: ConsoleServices) -> Iterator[Prometheus]:
    with prometheus() as made:
        with_monitoring(services, made.port)
        yield made


def now() -> str:
    """As JavaScript writes it."""
    return f"{time.time():.3f}"


def spans() -> str:
    return f"start={now()}&end={now()}&step=1"


def ask(web: TestClient, path: str, who: str = "root") -> tuple[int, Any]:
    answer = web.get(f"{BASE}/{path}", headers=signed_in(who))
    return answer.status_code, answer.json()


def test_the_page_hardware_reads_all_nodes(used: TestClient, measured: Prometheus) -> None:
    measured.rows = [series("5", node="g1", machine="secret"), series("NaN", node="g2"), series("7", other="x")]
    status, found = ask(used, f"query?{NAMES}&time={now()}")
    assert status == 200, found
    name = {"metric": {"instance": "g1", "nodename": "g1"}, "value": [1_767_225_600, "5"]}
    assert found == {"status": "success", "data": {"resultType": "vector", "result": [name]}}
    at = time.time()
    for query in HARDWARE:
        status, found = ask(used, f"query_range?{query}&start={at}&end={at}&step=1")
        assert status == 200, (query, found)
        (row,) = found["data"]["result"]
        assert (row["metric"]["instance"], row["values"]) == ("g1", [[1_767_225_600, "5"]])
    expressions = [one["query"] for one in measured.asked]
    assert len(set(expressions)) == 1 + len(HARDWARE)
    assert not any("instance" in one or "30s" in one or "rate(" in one for one in expressions)


@pytest.mark.parametrize(
    ("who", "jobs", "place"),
    [
        ("alice", {"carol~holds": "4"}, 'namespace=~"vision-1",'),
        ("bob", {"bob~hides": "6"}, 'namespace=~"nlp",'),
        ("carol", {"carol~holds": "4", "bob~hides": "6"}, 'namespace=~"nlp|vision-1",'),
        ("root", {"carol~holds": "4", "bob~hides": "6"}, ""),
    ],
)
def test_the_home_lists_idle_jobs_of_the_callers_groups(
    used: TestClient, measured: Prometheus, who: str, jobs: dict[str, str], place: str
) -> None:
    """Also where Prometheus answers more than it was asked for."""
    measured.rows = [
        series("4", namespace="vision-1", pod="holds-worker-0-0"),
        series("6", namespace="nlp", pod="hides-worker-0-0"),
        series("1", namespace="vision-1", pod="hides-worker-0-0"),
        series("1", namespace="nlp", pod="another"),
    ]
    status, found = ask(used, f"query?query={quote(HOME)}", who)
    assert status == 200, found
    assert {one["metric"]["job_name"]: one["value"][1] for one in found["data"]["result"]} == jobs
    (asked,) = measured.asked
    use = f'avg_over_time(DCGM_FI_DEV_GPU_UTIL{{{place}pod!=""}}[10m])'
    assert asked["query"] == f"avg by (namespace, pod) ({use} < 10)"


def test_a_person_of_no_group_has_no_idle_jobs(used: TestClient, measured: Prometheus) -> None:
    status, found = ask(used, f"query?query={quote(HOME)}", "dan")
    assert (status, found["data"]["result"], measured.asked) == (200, [], [])


@pytest.mark.parametrize("query", [f"query?{NAMES}", *(f"query_range?{one}&{{spans}}" for one in HARDWARE)])
def test_members_read_no_load_of_nodes(used: TestClient, measured: Prometheus, query: str) -> None:
    for who, code in (
        ("alice", "ForbiddenUserError"),
        ("program", "ForbiddenUserError"),
        ("", "UnauthorizedUserError"),
    ):
        status, found = ask(used, query.format(spans=spans()), who)
        assert (status in (401, 403), found["code"]) == (True, code)
    assert measured.asked == []


@pytest.mark.parametrize("query", ATTACKS)
def test_no_other_query_is_passed_on(used: TestClient, measured: Prometheus, query: str) -> None:
    for who in ("alice", "root"):
        for path in (f"query?query={quote(query)}", f"query_range?query={quote(query)}&{spans()}"):
            status, found = ask(used, path, who)
            assert (status, found["code"]) == (400, "InvalidParametersError"), path
    assert measured.asked == []


@pytest.mark.parametrize(
    "more",
    [
        *("", "start=1", "start={now}&end={now}", "start={now}&end={now}&step=0", "start={now}&end={now}&step=-1"),
        *("start={now}&end={now}&step=nan", "start={now}&end={now}&step=1e9", "start={now}&end={now}&step=1s"),
        *("start={old}&end={now}&step=1", "start={now}&end={old}&step=1", "start=0&end={now}&step=86400"),
        *("start={now}&end=99999999999&step=86400", "start=inf&end=inf&step=1", "start=\u0663&end={now}&step=1"),
        *("start={now}&end={now}&step=1&timeout=1h", "start={now}&start={now}&end={now}&step=1"),
        *("start={now}&end={now}&step=1&query=up", "start={now}&end={now}&step=1&time={now}"),
    ],
)
def test_times_have_limits(used: TestClient, measured: Prometheus, more: str) -> None:
    """A range of a day with a second between values is 86,400 values of each node."""
    path = more.format(now=now(), old=f"{time.time() - 3600:.3f}")
    status, found = ask(used, f"query_range?{HARDWARE[2]}&{path}")
    assert (status, found["code"], measured.asked) == (400, "InvalidParametersError", [])


@pytest.mark.parametrize("at", ["", "x", "-1", "0", "1e300", "nan", "{now}&time={now}"])
def test_a_time_is_one_of_the_last_day(used: TestClient, measured: Prometheus, at: str) -> None:
    status, found = ask(used, f"query?{NAMES}&time={at.format(now=now())}")
    assert (status, found["code"], measured.asked) == (400, "InvalidParametersError", [])


def test_an_instant_and_a_range_have_queries_of_their_own(used: TestClient, measured: Prometheus) -> None:
    for path in (f"query?{HARDWARE[2]}", f"query_range?{NAMES}&{spans()}"):
        assert ask(used, path)[1]["code"] == "InvalidParametersError"


def test_without_monitoring_the_answer_says_so(used: TestClient, services: ConsoleServices) -> None:
    status, found = ask(used, f"query?{NAMES}")
    assert (status, found["code"]) == (HTTPStatus.NOT_IMPLEMENTED, "NotImplementedError")
    with_monitoring(services, free_port())
    status, found = ask(used, f"query?{NAMES}")
    assert (status, set(found)) == (HTTPStatus.SERVICE_UNAVAILABLE, {"code", "message"})


@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize("who", ["root", "alice"])
def test_without_monitoring_no_job_is_idle(
    used: TestClient, services: ConsoleServices, who: str, *, away: bool
) -> None:
    """After an error, the home of administrators is blank while a job runs."""
    if away:
        with_monitoring(services, free_port())
    status, found = ask(used, f"query?query={quote(HOME)}", who)
    assert len(found.pop("warnings")) == 1
    assert (status, found) == (200, {"status": "success", "data": {"resultType": "vector", "result": []}})


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_no_other_method_and_address_of_prometheus(used: TestClient, measured: Prometheus, method: str) -> None:
    assert used.request(method, f"{BASE}/query?{NAMES}", headers=signed_in("root")).status_code == 405
    for path in ("/series", "/label/node/values", "/status/config", "/admin/tsdb/delete_series", "/../../-/reload"):
        assert used.get(f"{BASE}{path}?{NAMES}", headers=signed_in("root")).status_code == 404
    assert measured.asked == []
