"""What the console draws and lists of a real Prometheus and a real Alertmanager."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from urllib3 import Timeout

from pai_install.console.monitoring import MonitoringReader, NoMonitoringError, alerts_of, gpus_of_groups, gpus_of_pods
from pai_install.console.settings import MonitoringSettings
from tests.integration.alerts.servers import monitoring

HOURS = 1
ALERTS = [{"alertname": "GpuHot", "namespace": "vision"}, {"alertname": "NodeDown", "node": "gpu-1"}]


def metrics(now: int) -> str:
    """Two GPUs of a job, one busy and one idle, and one of another group, for an hour."""
    series = {
        'gpu="0",namespace="vision",pod="train-0"': 90,
        'gpu="1",namespace="vision",pod="train-1"': 10,
        'gpu="2",namespace="speech",pod="other-0"': 50,
    }
    lines = ["# TYPE DCGM_FI_DEV_GPU_UTIL gauge"]
    for labels, value in series.items():
        lines += [f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {value} {at}" for at in range(now - 3600, now, 30)]
    return "\n".join([*lines, "# EOF\n"])


@pytest.fixture(scope="module")
def settings(
    promtool: Path, alertmanager: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MonitoringSettings]:
    folder = tmp_path_factory.mktemp("monitoring")
    with monitoring(promtool, alertmanager, folder, metrics(int(time.time())), {}) as found:
        body = json.dumps([{"labels": labels} for labels in ALERTS]).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{found.alertmanager}/api/v2/alerts", body, headers)  # noqa: S310 - ours
        urllib.request.urlopen(request, timeout=10)  # noqa: S310 - ours
        yield found


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prometheus shares its processors with other tests."""
    monkeypatch.setattr("pai_install.console.monitoring._TIMEOUT", Timeout(60))


def test_curves_are_of_the_pods_of_a_job(settings: MonitoringSettings) -> None:
    curves = MonitoringReader(settings).curves(gpus_of_pods("vision", ["train-0", "train-1"]), HOURS)
    found = {one.key: {value for _, value in one.points} for one in curves}
    assert found == {"max": {90}, "avg": {50}, "min": {10}}
    assert len(curves[0].points) > 100
    assert MonitoringReader(settings).curves(gpus_of_pods("speech", ["train-0"]), HOURS) == ()


def test_curves_are_of_groups(settings: MonitoringSettings) -> None:
    curves = MonitoringReader(settings).curves(gpus_of_groups(["vision"]), HOURS)
    assert {one.key: one.points[0][1] for one in curves} == {"held": 2, "busy": 1}
    curves = MonitoringReader(settings).curves(gpus_of_groups(["vision", "speech"]), HOURS)
    assert {one.key: one.points[0][1] for one in curves} == {"held": 3, "busy": 1.5}


def test_alerts(settings: MonitoringSettings) -> None:
    found = MonitoringReader(settings).alerts()
    assert sorted(one["labels"]["alertname"] for one in found) == ["GpuHot", "NodeDown"]
    assert {"annotations", "startsAt", "status", "fingerprint"} <= found[0].keys()
    assert [one["labels"] for one in alerts_of(found, frozenset({"vision"}))] == [ALERTS[0]]


def test_a_wrong_program_on_the_port_is_no_monitoring(settings: MonitoringSettings) -> None:
    swapped = MonitoringSettings(prometheus=settings.alertmanager, alertmanager=settings.prometheus)
    with pytest.raises(NoMonitoringError):
        MonitoringReader(swapped).alerts()
    with pytest.raises(NoMonitoringError):
        MonitoringReader(swapped).curves(gpus_of_groups(["vision"]), HOURS)
