"""What measures runs where neither a kubelet nor a driver answers, and says so."""

from __future__ import annotations

import json

from testinfra.host import Host

UNIT = "pai-gpu-use.service"
METRICS = "/var/lib/pai-metrics/gpu.prom"


def test_it_runs(host: Host) -> None:
    assert host.service(UNIT).is_running
    assert host.service(UNIT).is_enabled
    found = json.loads(host.file("/etc/pai-install/gpu-use.json").content_string)
    assert found == {"node": "gpu-use", "metrics": METRICS, "expected": 8}


def test_metrics_say_that_no_driver_answers(host: Host) -> None:
    found = host.file(METRICS).content_string
    assert "pai_gpu_expected 8" in found
    assert "pai_gpu_count" not in found


def test_a_kubelet_that_is_away_ends_it_not(host: Host) -> None:
    said = host.check_output(f"journalctl --unit={UNIT} --output=cat")
    assert "kubelet.sock" in said
    assert "Traceback" not in said
    assert host.check_output(f"systemctl show --property=NRestarts --value {UNIT}") == "0"
