"""The program over a kubelet, a driver and an API server that answer as real ones do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from pai_install.agents.common.api import ApiError, Client, with_kubeconfig
from pai_install.agents.common.log import Log
from pai_install.agents.common.utilization import Utilization, idle, unused, utilization_of
from pai_install.agents.gpu_use.__main__ import Meter
from pai_install.agents.gpu_use.smi import Smi
from tests.unit.agents.gpu_use.kubelet import answering, listing, well

START = 1_790_000_000
UID = "0f0e0d0c-1111-2222-3333-444455556666"


class Server:
    """Has the pods of a node, and patches their status."""

    def __init__(self) -> None:
        self.pods: list[dict[str, Any]] = []
        self.told: list[dict[str, Any]] = []
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                outer.asked.append(self.path)
                self.answer({"items": outer.pods})

            def do_PATCH(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(f"{self.path} {self.headers['Content-Type']}")
                outer.told.append(body)
                for pod in outer.pods:
                    if pod["metadata"]["uid"] == body["metadata"]["uid"]:
                        pod["status"] = {**pod["status"], **body["status"]}
                self.answer({})

            def answer(self, body: object) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def last(self) -> Utilization | None:
        return utilization_of(self.pods[0])


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.http.shutdown()
    made.http.server_close()


def pod(name: str = "train-0", uid: str = UID, **more: Any) -> dict[str, Any]:
    metadata = {"namespace": "vision", "name": name, "uid": uid, "annotations": more.get("notes", {})}
    return {"metadata": metadata, "status": {"phase": more.get("phase", "Running")}}


@pytest.fixture
def meter(server: Server, tmp_path: Path) -> Meter:
    config = tmp_path / "kubelet.conf"
    config.write_text(f"clusters:\n- cluster:\n    server: http://127.0.0.1:{server.http.server_port}\n")
    driver = tmp_path / "nvidia-smi"
    driver.write_text(f"#!/bin/sh\ncat {tmp_path}/use.csv\n")
    driver.chmod(0o755)
    (tmp_path / "use.csv").write_text("0, GPU-1, 0\n1, GPU-2, 3\n")
    said: list[str] = []
    client = Client(with_kubeconfig(config, tmp_path / "none"))
    return Meter(client, "gpu-01", Smi([str(driver)]), said.append, tmp_path / "socket", tmp_path / "groups")


def minutes(meter: Meter, count: int, first: int = 1) -> None:
    for number in range(first, first + count):
        for _ in range(4):
            meter.sample()
        meter.end_minute(START + 60 * number, whole=True)


HELD = well(listing({("vision", "train-0"): {"nvidia.com/gpu": ["GPU-1", "GPU-2"]}, ("vision", "cpu"): {}}))


def test_each_minute_is_told_of_a_pod_that_is_not_busy(server: Server, meter: Meter, tmp_path: Path) -> None:
    server.pods = [pod(), pod("cpu", "uid-of-another")]
    with answering(tmp_path / "socket", *HELD):
        minutes(meter, 3)
    assert len(server.told) == 3
    assert server.last is not None
    assert (server.last.at, server.last.gpus) == (START + 180, 2)
    found = idle(server.last, 10)
    assert found is not None
    assert (found.since, found.most) == (START, 3)
    assert unused(server.last, 10) is not None  # its processors are not known, which counts as busy until now
    assert unused(server.last, 10).since == START + 180  # type: ignore[union-attr]
    assert "fieldSelector=spec.nodeName%3Dgpu-01&labelSelector=pai-install%2Fuser" in server.asked[0]
    assert server.asked[1].endswith("/vision/pods/train-0/status application/strategic-merge-patch+json")


def test_a_pod_that_is_busy_is_seldom_told_of(server: Server, meter: Meter, tmp_path: Path) -> None:
    (tmp_path / "use.csv").write_text("0, GPU-1, 97\n1, GPU-2, 0\n")
    server.pods = [pod()]
    with answering(tmp_path / "socket", *HELD):
        minutes(meter, 9)
        assert len(server.told) == 1
        (tmp_path / "use.csv").write_text("0, GPU-1, 0\n1, GPU-2, 0\n")
        minutes(meter, 1, 10)
        assert len(server.told) == 2
        (tmp_path / "use.csv").write_text("0, GPU-1, 97\n1, GPU-2, 0\n")
        minutes(meter, 1, 11)  # at once: someone may be about to stop it
        assert len(server.told) == 3
        minutes(meter, 11, 12)
        assert len(server.told) == 4


def test_a_program_that_starts_again_goes_on(server: Server, meter: Meter, tmp_path: Path) -> None:
    server.pods = [pod()]
    with answering(tmp_path / "socket", *HELD):
        minutes(meter, 2)
        meter.usage.clear()
        minutes(meter, 1, 3)
        assert idle(server.last, 10).since == START  # type: ignore[arg-type, union-attr]
        meter.usage.clear()
        minutes(meter, 1, 9)  # it was away for too long
    assert idle(server.last, 10).since == START + 8 * 60  # type: ignore[arg-type, union-attr]


def test_what_no_one_measures_is_not_told(server: Server, meter: Meter, tmp_path: Path) -> None:
    server.pods = [pod()]
    minutes(meter, 2)  # no kubelet
    assert server.told == []
    with answering(tmp_path / "socket", *HELD):
        (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
        minutes(meter, 1, 3)
        assert server.last is not None
        assert server.last.gpu[-1] == (START + 180, 100)
        server.pods = [pod(phase="Succeeded")]
        minutes(meter, 1, 4)
    assert len(server.told) == 1


def test_a_minute_in_which_the_clock_was_set_is_not_known(server: Server, meter: Meter, tmp_path: Path) -> None:
    server.pods = [pod()]
    with answering(tmp_path / "socket", *HELD):
        minutes(meter, 2)
        for _ in range(4):
            meter.sample()
        meter.end_minute(START + 180, whole=False)
    assert idle(server.last, 10).since == START + 180  # type: ignore[arg-type, union-attr]


def test_gpus_that_hived_gave_are_known_by_their_numbers(server: Server, meter: Meter, tmp_path: Path) -> None:
    server.pods = [pod(notes={"hivedscheduler.microsoft.com/pod-leaf-cell-isolation": "1"})]
    with answering(tmp_path / "socket", *well(listing({("vision", "train-0"): {}}))):
        minutes(meter, 2)
    assert server.last is not None
    assert server.last.gpus == 1
    assert server.last.gpu[-1] == (START + 120, 3)


def test_processor_time_is_that_of_the_minute(server: Server, meter: Meter, tmp_path: Path) -> None:
    server.pods = [pod()]
    group = tmp_path / "groups/kubepods" / f"pod{UID}"
    group.mkdir(parents=True)
    with answering(tmp_path / "socket", *HELD):
        for number, used_s in enumerate((10, 10.6, 25.6), 1):
            (group / "cpu.stat").write_text(f"usage_usec {int(used_s * 1e6)}\n")
            minutes(meter, 1, number)
    assert server.last is not None
    assert server.last.cpu == ((START + 60, 100), (START + 180, 25))


def test_an_api_server_that_is_away_is_named_once(
    meter: Meter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meter.client = Client(with_kubeconfig(tmp_path / "none", tmp_path / "none"))
    meter.warn = Log().warn
    with answering(tmp_path / "socket", *HELD):
        minutes(meter, 2)
    assert capsys.readouterr().err.count("/api/v1/pods") == 1


def test_a_configuration_without_a_server(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("{}")
    with pytest.raises(ApiError, match="names no server"):
        Client(with_kubeconfig(tmp_path / "config", tmp_path / "none")).json("GET", "/api/v1/pods")
