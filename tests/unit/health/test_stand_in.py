"""Collector and verdicts together, on this host, with the lab's stand-in for nvidia-smi that plays a sick machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.verdict import Verdict
from pai_install.health.collect import collector
from pai_install.health.evidence.document import parse_evidence
from pai_install.health.judge.evaluate import Knowledge, MachineReport, evaluate
from pai_install.health.judge.expectation import Expectation
from pai_install.health.judge.rules import GPU_CHECKS
from pai_install.lab.gpu import PRODUCTS, STAND_IN_DIR, GpuModel, gpu_xml, gpus_of
from pai_install.lab.gpu import smi_xml as lab_smi_xml
from pai_install.lab.gpu_stand_in import FOLDER, entries
from pai_install.lab.spec import LabGpus, LabMachine

from .machines import CATALOGUE, LIMITS, change, h100, healthy, smi_xml

STAND_IN = STAND_IN_DIR / "nvidia-smi-stand-in"
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
        # a driver that does not hang has the time that it needs on a busy host
        timeout = "1" if "sleep" in files else "30"
        command = [sys.executable, collector.__file__, "--driver-timeout", timeout, "--path", ""]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        expected = {"here": Expectation(sku="h100", device="nvidia.com/gpu", model="H100", count=count)}
        evidence = parse_evidence("here", json.loads(done.stdout))
        return evaluate([evidence], Knowledge(LIMITS, CATALOGUE, expected))[0]

    return run


def gpu_failures(report: MachineReport) -> dict[str, str]:
    """Check -> action of what FAILs about GPUs: the controller host's own disk and clock are none of this test."""
    found = [item for item in report.findings if item.verdict is Verdict.FAIL]
    return {item.id: item.action.value for item in found if item.id.startswith(("gpu", "driver", "nvlink"))}


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


def test_driver_and_library_that_do_not_match(play: Play, snapshot: SnapshotAssertion) -> None:
    report = play(status="18", text="Failed to initialize NVML: Driver/library version mismatch")
    assert gpu_failures(report) == {"driver-status": "reboot"}
    finding = next(item for item in report.findings if item.id == "driver-status")
    assert finding.message == snapshot


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.generation)
def test_the_labs_answers_leave_nothing_open(product: GpuModel) -> None:
    machine = LabMachine("gpu-01", IPv4Address("10.0.0.1"), gpus=LabGpus(product.name, 2))
    box = healthy().output("nvidia_smi_xml", lab_smi_xml(gpu_xml(gpu) for gpu in gpus_of(machine)))
    own = {check.id for check in GPU_CHECKS} - {"gpu-model"}  # the model is the test machine's
    calm = (Verdict.PASS, Verdict.SKIP)
    findings = box.report().findings
    assert [item for item in findings if item.id in own and item.verdict not in calm] == []
    assert sum(item.id in own and item.verdict is Verdict.PASS for item in findings) > 30


def test_a_lab_machine_is_healthy(play: Play, tmp_path: Path) -> None:
    machine = LabMachine("here", IPv4Address("10.0.0.1"), gpus=LabGpus("H100", 2))
    files = {name.removeprefix(f"{FOLDER}/"): entry.content for name, entry in entries(machine).items()}
    for name in ("list.txt", "nvlink.txt", "nvlink-errors.txt", "p2p.txt"):
        (tmp_path / name).write_text(files[name])
    report = play(files["answer.xml"])
    verdicts = {item.id: item.verdict for item in report.findings if item.id.startswith(("gpu", "nvlink"))}
    assert verdicts["nvlink-links"] is Verdict.PASS
    assert verdicts["gpu-peer-to-peer"] is Verdict.PASS
    assert verdicts["gpu-model"] is Verdict.PASS
    assert gpu_failures(report) == {}
