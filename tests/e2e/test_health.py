"""Health on real machines whose GPUs are stand-ins: each sickness is found for what it is, and nothing else."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from .conftest import Cluster, pai_install

pytestmark = pytest.mark.lab

ONE, OTHER = "lab-worker1", "lab-worker2"
LABEL = "pai-install/cordoned-by-health"
LOST_GPU = "0000:14:00.0"
# what is shown -> the check that FAILs, the device it names, what to do
SICKNESSES = {
    "gpu-lost": ("gpu-lost", LOST_GPU, "reboot"),
    "xid-79": ("gpu-xid", LOST_GPU, "reboot"),
    "driver-hang": ("driver-responds", "", "reboot"),
    "driver-mismatch": ("driver-status", "", "reboot"),
}
PAIRS = [("gpu-lost", "xid-79"), ("driver-hang", "driver-mismatch")]
Show = Callable[[str, str], None]


@pytest.fixture
def show(cluster: Cluster) -> Iterator[Show]:
    """`show(machine, state)`; afterwards all GPUs are healthy."""
    touched: set[str] = set()

    def change(machine: str, state: str) -> None:
        touched.add(machine)
        lab_gpu(cluster, machine, state)

    yield change
    for machine in touched:
        lab_gpu(cluster, machine, "healthy")


def lab_gpu(cluster: Cluster, machine: str, state: str) -> None:
    """Has the stand-ins of a machine show that."""
    done = pai_install("lab", "gpu", "--site", str(cluster.site), machine, state)
    assert done.returncode == 0, done.stderr


def health(cluster: Cluster, *words: str) -> dict[str, Any]:
    """The report of a health run; its exit code is the process's."""
    done = cluster.run("health", "--format", "json", *words)
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["exit_code"] == done.returncode
    return {**report, "stderr": done.stderr}


def failures(report: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    """(machine, check, device, action) of every FAIL."""
    return {
        (machine["name"], item["check"], item.get("device", ""), item["action"])
        for machine in report["machines"]
        for item in machine["findings"]
        if item["verdict"] == "FAIL"
    }


def test_machines_with_healthy_gpus_are_healthy(cluster: Cluster) -> None:
    report = health(cluster)
    assert failures(report) == set()
    assert report["exit_code"] == 0
    assert report["unreachable"] == {}


def test_machines_have_the_gpus_of_the_layout_and_others_none(cluster: Cluster) -> None:
    report = health(cluster, "--all")
    counted = {
        machine["name"]: [item for item in machine["findings"] if item["check"] in ("gpu-count", "kubernetes-gpus")]
        for machine in report["machines"]
    }
    for worker in (ONE, OTHER):
        assert [item["verdict"] for item in counted[worker]] == ["PASS", "PASS"]
        assert "nvidia-smi 8, nvidia-smi -L 8, bus 8, /proc 8, /dev 8" in counted[worker][0]["value"]
    assert [item["verdict"] for item in counted["lab-master"]] == ["SKIP"]
    assert cluster.on("lab-master", "ls /usr/local/bin").count("stand-in") == 0


@pytest.mark.parametrize(("state", "other"), PAIRS)
def test_each_sickness_is_found_for_what_it_is(cluster: Cluster, show: Show, state: str, other: str) -> None:
    show(ONE, state)
    show(OTHER, other)
    wanted = {(machine, *SICKNESSES[what]) for machine, what in ((ONE, state), (OTHER, other))}
    report = health(cluster)
    assert failures(report) == wanted
    assert report["exit_code"] == 7
    applied = cluster.apply("--phase", "verify")
    assert applied["exit_code"] == 7
    found = {
        (item["subject"], item["id"], item["remedy"].rpartition("(action: ")[2].rstrip(")"))
        for item in applied["findings"]
        if item["verdict"] == "FAIL"
    }
    assert found == {(f"{name} {device}".strip(), check, action) for name, check, device, action in wanted}


def test_a_hung_driver_costs_one_timeout_and_leaves_nothing_behind(
    cluster: Cluster, show: Show, tmp_path: Path
) -> None:
    show(ONE, "driver-hang")
    report = health(cluster, "--limit", ONE, "--save", str(tmp_path / "evidence.jsonl"))
    assert failures(report) == {(ONE, *SICKNESSES["driver-hang"])}
    (line,) = (tmp_path / "evidence.jsonl").read_text().splitlines()
    hung = json.loads(line)["evidence"]
    assert [name for name in hung["commands"] if name.startswith("nvidia_smi")] == ["nvidia_smi_xml"]
    assert hung["commands"]["nvidia_smi_xml"]["timed_out"]
    assert 30 <= hung["duration_s"] < 60
    assert cluster.on(ONE, "pgrep -fc [n]vidia-smi-stand-in || :").strip() == "0"


def test_every_form_of_report_says_the_same(cluster: Cluster, show: Show, tmp_path: Path) -> None:
    show(ONE, "gpu-lost")
    evidence = tmp_path / "evidence.jsonl.gz"
    assert health(cluster, "--save", str(evidence))["exit_code"] == 7

    def again(form: str) -> str:
        done = cluster.run("health", "--from", str(evidence), "--format", form)
        assert done.returncode == 7, done.stderr
        return done.stdout

    cases = ET.fromstring(again("junit")).iter("testcase")  # noqa: S314 - our own output
    failed = [case for case in cases if case.find("failure") is not None]
    assert [f"{case.get('classname')} {case.get('name')}" for case in failed] == [f"{ONE} gpu-lost {LOST_GPU}"]
    metrics = again("prometheus").splitlines()
    assert [line for line in metrics if 'verdict="FAIL"' in line and line.startswith("pai_health_finding")] == [
        f'pai_health_finding{{machine="{ONE}",device="{LOST_GPU}",check="gpu-lost",verdict="FAIL",action="reboot"}} 1'
    ]
    page = again("html")
    assert "GPU is lost" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_cordon_takes_the_sick_and_gives_them_back_but_nothing_of_a_persons(cluster: Cluster, show: Show) -> None:
    show(ONE, "gpu-lost")
    show(OTHER, "xid-79")
    cluster.kubectl("cordon", OTHER)
    try:
        report = health(cluster, "--act", "cordon", "--max-cordoned", "1")
        assert f"cordoned {ONE}: gpu-lost" in report["stderr"]
        assert nodes(cluster) == {"lab-master": (False, ""), ONE: (True, "gpu-lost"), OTHER: (True, "")}
        show(ONE, "healthy")
        show(OTHER, "healthy")
        report = health(cluster, "--act", "cordon", "--max-cordoned", "1")
        assert f"uncordoned {ONE}" in report["stderr"]
        assert nodes(cluster) == {"lab-master": (False, ""), ONE: (False, ""), OTHER: (True, "")}
    finally:
        cluster.kubectl("uncordon", ONE, OTHER)
        cluster.kubectl("label", "node", ONE, OTHER, f"{LABEL}-")


def test_too_many_are_never_cordoned(cluster: Cluster, show: Show) -> None:
    show(ONE, "gpu-lost")
    report = health(cluster, "--act", "cordon", "--max-cordoned", "0")
    assert f"not cordoned {ONE}" in report["stderr"]
    assert not any(cordoned for cordoned, _ in nodes(cluster).values())


def nodes(cluster: Cluster) -> dict[str, tuple[bool, str]]:
    """Node -> whether it is cordoned, and the reason on health's label."""
    found = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    return {
        node["metadata"]["name"]: (node["spec"].get("unschedulable", False), node["metadata"]["labels"].get(LABEL, ""))
        for node in found
    }


STAND_IN_IMAGE = "pai.invalid/all-reduce-perf-stand-in:1"
# prints a result in the form of nccl-tests
STAND_IN_PROGRAM = """#!/bin/sh
echo "# This is a stand-in for all_reduce_perf: nothing was measured. Called with: $*"
for rank in 0 1 2 3 4 5 6 7; do echo "#  Rank  $rank Group  0 Pid  1 on  stand-in device  $rank [0x10] stand-in"; done
echo "  17179869184  4294967296  float  sum  -1  1000  150.00  SPEED  0  1000  150.00  SPEED  0"
echo "# Out of bounds values : 0 OK"
"""


def load_stand_in(cluster: Cluster, machine: str, speed: str) -> None:
    """Gives a machine an image with a stand-in for all_reduce_perf that prints that bus bandwidth."""
    folder = "/var/tmp/all-reduce-perf-stand-in"
    program = base64.b64encode(STAND_IN_PROGRAM.replace("SPEED", speed).encode()).decode()
    # by its id: Docker has it by its digest, without a tag
    listed = "docker images --format '{{.ID}} {{.Repository}}' | grep /busybox$ | head -n 1"
    base = cluster.on(machine, listed).split()[0]
    dockerfile = f"FROM {base}\\nCOPY all_reduce_perf /usr/local/bin/\\n"
    cluster.on(
        machine,
        f"mkdir -p {folder} && cd {folder} && echo {program} | base64 -d > all_reduce_perf && chmod 755 all_reduce_perf"
        f" && printf '{dockerfile}' > Dockerfile && DOCKER_BUILDKIT=0 docker build -q -t {STAND_IN_IMAGE} . 2>/dev/null"
        f" && docker save {STAND_IN_IMAGE} | ctr -n k8s.io images import - && rm -rf {folder}",
    )


def test_bandwidth_is_measured_by_a_job_on_each_machine(cluster: Cluster) -> None:
    load_stand_in(cluster, ONE, "235.50")
    load_stand_in(cluster, OTHER, "120.25")
    report = health(cluster, "--all", "--bandwidth-image", STAND_IN_IMAGE)
    found = {
        machine["name"]: [
            (item["verdict"], item.get("value", "")) for item in machine["findings"] if is_bandwidth(item)
        ]
        for machine in report["machines"]
    }
    assert found[ONE] == [("PASS", "235.5 GB/s")]
    assert found[OTHER] == [("FAIL", "120.25 GB/s")]
    assert failures(report) == {(OTHER, "nccl-all-reduce", "", "drain")}
    assert jobs(cluster) == []


def test_an_image_without_the_program_says_nothing_of_the_gpus(cluster: Cluster) -> None:
    image = cluster.on(ONE, "ctr -n k8s.io images ls -q | grep ^registry.*/busybox: | head -n 1").strip()
    report = health(cluster, "--bandwidth-image", image)
    found = [item for machine in report["machines"] for item in machine["findings"] if is_bandwidth(item)]
    assert [item["verdict"] for item in found] == ["UNKNOWN", "UNKNOWN"]
    assert all("has no all_reduce_perf" in item["message"] for item in found)
    assert report["exit_code"] == 0
    assert jobs(cluster) == []


def is_bandwidth(finding: dict[str, Any]) -> bool:
    """Whether a finding is that of the bandwidth job."""
    return bool(finding["check"] == "nccl-all-reduce")


def jobs(cluster: Cluster) -> list[str]:
    """The bandwidth's jobs and pods that are there."""
    return cluster.kubectl("get", "jobs,pods", "-l", "app=pai-health-bandwidth", "-o", "name").split()
