"""Collector and verdicts together, on this box, with a stand-in for nvidia-smi that plays a sick machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pai_install.findings import Verdict
from pai_install.health import collector
from pai_install.health.evaluate import Knowledge, MachineReport, evaluate
from pai_install.health.evidence import parse_evidence
from pai_install.health.snapshot import Expectation

from .machines import CATALOGUE, LIMITS, change, h100, smi_xml

STAND_IN = Path(__file__).parent / "stand_in" / "nvidia-smi"
Play = Callable[..., MachineReport]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """`play(answer, log=...)` runs the collector where nvidia-smi answers so, and judges what it brings."""
    programs = tmp_path / "programs"
    programs.mkdir()
    shutil.copy(STAND_IN, programs / "nvidia-smi")
    for tool in ("sh", "cat", "sleep"):
        (programs / tool).symlink_to(shutil.which(tool) or tool)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("PAI_STAND_IN", str(tmp_path))

    def run(answer: str = "", *, count: int = 2, log: str = "", **files: str) -> MachineReport:
        (tmp_path / "answer.xml").write_text(answer)
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        (programs / "journalctl").write_text(f"#!/bin/sh\ncat <<'END'\n{log}\nEND\n")
        (programs / "journalctl").chmod(0o755)
        command = [sys.executable, collector.__file__, "--driver-timeout", "1"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        expected = {"here": Expectation(sku="h100", device="nvidia.com/gpu", model="H100", count=count)}
        evidence = parse_evidence("here", json.loads(done.stdout))
        return evaluate([evidence], Knowledge(LIMITS, CATALOGUE, expected))[0]

    return run


def gpu_failures(report: MachineReport) -> dict[str, str]:
    """Check -> action of what FAILs about GPUs: this box's own disk and clock are none of this test."""
    found = [item for item in report.findings if item.verdict is Verdict.FAIL]
    return {item.check: item.action.value for item in found if item.check.startswith(("gpu", "driver", "nvlink"))}


def test_healthy_answer_has_no_failure(play: Play) -> None:
    assert gpu_failures(play(smi_xml([h100(0), h100(1)]))) == {}


def test_lost_gpu(play: Play) -> None:
    report = play(smi_xml([h100(0), change(h100(1), "temperature", "GPU is lost")]))
    assert gpu_failures(report) == {"gpu-lost": "reboot"}


def test_missing_gpu(play: Play) -> None:
    assert gpu_failures(play(smi_xml([h100(0)]))) == {"gpu-count": "reboot"}


def test_xid_79_in_the_log(play: Play) -> None:
    line = f"{time.strftime('%Y-%m-%dT%H:%M:%S+0000', time.gmtime())} here kernel: NVRM: Xid (PCI:0000:18:00): 79, x"
    assert gpu_failures(play(smi_xml([h100(0), h100(1)]), log=line)) == {"gpu-xid": "reboot"}


def test_hung_driver_costs_one_timeout(play: Play) -> None:
    start = time.monotonic()
    report = play(sleep="50")
    assert time.monotonic() - start < 15
    assert gpu_failures(report) == {"driver-responds": "reboot"}


def test_driver_and_library_that_do_not_match(play: Play) -> None:
    report = play(status="18", text="Failed to initialize NVML: Driver/library version mismatch")
    assert gpu_failures(report) == {"driver-status": "reboot"}
    finding = next(item for item in report.findings if item.check == "driver-status")
    assert "upgraded under running work" in finding.message
