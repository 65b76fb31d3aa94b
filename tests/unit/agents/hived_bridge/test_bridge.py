"""The program: probes, limits of its servers, start and end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pai_install.agents.hived_bridge import servers
from pai_install.agents.hived_bridge.configuration import SETTLE_S, TRIAL_S
from pai_install.agents.hived_bridge.metrics import METRICS, Metrics
from pai_install.agents.hived_bridge.settings import Settings
from tests.ports import free_ports
from tests.unit.agents.hived_bridge.conftest import CONFIGURATION, TOKEN, House, PlayedHived, filter_args, recorded
from tests.unit.agents.hived_bridge.peers import ApiServer, encoded, slow
from tests.unit.agents.installed import install_agent
from tests.waiting import until


def settled(house: House, later: float = SETTLE_S) -> None:
    """The configuration is looked at as if so many seconds had gone by."""
    configuration = house.bridge.configuration
    configuration.look(configuration.state.since + later)


def test_probes_while_all_is_well(house: House) -> None:
    settled(house)
    assert house.get("/livez")[0] == 200
    assert house.get("/healthz") == (200, b"HiveD answers\n")
    assert house.get("/readyz")[0] == 200
    assert b"hived_bridge_hived_up 1" in house.get("/metrics")[1]


def test_probes_while_hived_is_down(house: House) -> None:
    settled(house)
    house.hived.fault = lambda *_: (500, b"")
    assert house.get("/livez")[0] == 200
    assert house.get("/healthz") == (503, b"HiveD does not answer\n")
    assert house.get("/readyz")[0] == 503
    assert b"hived_bridge_hived_up 0" in house.get("/metrics")[1]


def test_ready_only_with_the_wanted_configuration(house: House) -> None:
    assert house.get("/readyz")[0] == 503
    settled(house)
    house.settings.wanted.write_text("virtualClusters: {broken: 1}\n")
    house.hived.fault = lambda *_: (500, b"")
    settled(house, 1)
    settled(house, TRIAL_S)
    house.hived.fault = None
    settled(house)
    assert house.settings.used.read_text() == CONFIGURATION
    status, words = house.get("/readyz")
    assert (status, b"last good" in words) == (503, True)
    assert house.get("/healthz")[0] == 200
    assert b"hived_bridge_configuration_current 0" in house.get("/metrics")[1]


def test_last_good_configuration_is_kept_in_the_cluster(house: House) -> None:
    settled(house)
    assert house.api.maps["pai-hived/hived-last-good"] == {"hivedscheduler.yaml": CONFIGURATION}


@pytest.mark.parametrize("path", ["/", "/v1/inspect/clusterstatus", "/metrics/x"])
def test_open_port_has_nothing_else(house: House, path: str) -> None:
    assert house.get(path)[0] == 404


def test_open_port_takes_no_calls_of_kube_scheduler(house: House) -> None:
    assert house.raw("/v1/extender/filter", encoded(filter_args()), opened=True)[0] == 404
    assert not house.hived.bodies


def test_kube_schedulers_port_is_on_loopback_only(house: House) -> None:
    extender, opened = house.bridge._servers
    assert extender.server_address[0] == "127.0.0.1"
    assert opened.server_address[0] == "0.0.0.0"  # noqa: S104 # that it is


def test_metrics_say_what_they_are_before_they_have_values(house: House) -> None:
    text = house.get("/metrics")[1].decode()
    assert all(f"# TYPE {name} {kind.type}" in text for name, kind in METRICS.items())


@given(st.lists(st.floats(0, 20), max_size=20))
def test_histogram_counts_every_duration_in_all_buckets_above(durations: list[float]) -> None:
    metrics = Metrics()
    for duration in durations:
        metrics.observe("hived_bridge_call_seconds", duration, verb="filter")
    name = "hived_bridge_call_seconds_bucket"
    assert metrics.value(name, verb="filter", le="3") == sum(duration <= 3 for duration in durations)
    assert metrics.value(name, verb="filter", le="+Inf") == len(durations)


def spoken(port: int, *pieces: bytes, pause: float = 0.0) -> bytes:
    """What a raw connection is answered; empty when it is closed."""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            return b""
        answer = b""
        try:
            while piece := connection.recv(65536):
                answer += piece
        except OSError:
            return answer
        return answer


HEAD = b"POST /v1/extender/filter HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        HEAD + b"\r\n{}",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: x\r\n\r\n",
        HEAD + b"Content-Length: 99999999999999\r\n\r\n{",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        HEAD + b"Content-Length: 50\r\n\r\n{}",
        HEAD.replace(b"application/json", b"text/plain") + b"Content-Length: 2\r\n\r\n{}",
    ],
    ids=["no length", "negative", "no number", "too much", "chunked", "less than said", "another type"],
)
def test_body_is_bounded(house: House, request_: bytes) -> None:
    assert b" 400 " in spoken(house.bridge.ports[0], request_).partition(b"\r\n")[0]
    assert not house.hived.bodies


def test_client_that_dribbles_is_ended(build: Callable[..., House], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_install.agents.hived_bridge.__main__._PROBE_LIMIT_S", 0.3)
    house = build()
    started = time.monotonic()
    spoken(house.bridge.ports[1], b"GET /livez HTTP/1.1\r\n", *[b"X: y\r\n"] * 400, pause=0.05)
    assert time.monotonic() - started < 15


def test_too_many_connections_are_closed_and_later_ones_answered(
    build: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "MOST_CONNECTIONS", 2)
    house = build()
    port = house.bridge.ports[1]
    # they are taken in their order
    held = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(2)]
    assert spoken(port, b"GET /livez HTTP/1.0\r\n\r\n") == b""
    for connection in held:
        connection.close()
    until(lambda: b" 200 " in spoken(port, b"GET /livez HTTP/1.0\r\n\r\n"), 60)


def listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def started(settings: Settings, hived: PlayedHived, api: ApiServer, ports: tuple[int, ...]) -> subprocess.Popen[str]:
    words = [f"--extender-port={ports[0]}", f"--open-port={ports[1]}", f"--hived-port={hived.port}", "--plain-api"]
    words += ["--api-host=127.0.0.1", f"--api-port={api.port}", f"--token={settings.token}", "--namespace=pai-hived"]
    words += [f"--wanted={settings.wanted}", f"--used={settings.used}", "--record=hived-last-good"]
    folder = install_agent("hived_bridge", settings.used.parent / "opt")
    command = [sys.executable, "-s", "-B", "-m", "pai_install.agents.hived_bridge", *words]
    environment = {"PATH": os.environ["PATH"]}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_program_ends_a_call_before_it_ends_itself(
    settings: Settings, hived: PlayedHived, api: ApiServer, snapshot: SnapshotAssertion
) -> None:
    hived.says("filter", recorded("filter waits"))
    hived.fault = slow(0.5)
    ports = free_ports(2)
    program = started(settings, hived, api, ports)
    until(lambda: settings.used.exists() and listens(ports[0]), 60)
    with socket.create_connection(("127.0.0.1", ports[0]), 10) as connection:
        body = encoded(filter_args())
        connection.sendall(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        until(lambda: hived.asked("filter") == 1, 60)
        program.send_signal(signal.SIGTERM)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    told, _ = program.communicate(timeout=60)
    assert recorded("filter waits").body in answer
    assert program.returncode == 0
    assert [json.loads(line)["event"] for line in told.splitlines()][-1] == snapshot
    assert TOKEN not in told


def test_program_says_why_it_cannot_start(settings: Settings, hived: PlayedHived, api: ApiServer) -> None:
    settings.wanted.unlink()
    program = started(settings, hived, api, free_ports(2))
    told, _ = program.communicate(timeout=60)
    assert program.returncode == 1
    assert "wanted.yaml" in json.loads(told)["reason"]


def test_call_that_cannot_be_processed_is_logged_and_the_next_is_answered(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.hived.says("filter", recorded("filter waits"))
    answer = house.bridge.extender.answer

    def fail(verb: str, body: bytes) -> object:
        raise KeyError("something new")

    monkeypatch.setattr(house.bridge.extender, "answer", fail)
    assert house.filter()[0] == 500
    assert any("something new" in str(line.get("reason")) for line in house.lines())
    monkeypatch.setattr(house.bridge.extender, "answer", answer)
    assert house.filter()[0] == 200
