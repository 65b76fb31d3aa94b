"""Checks that compare machines, and what Kubernetes says of them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Action, Verdict
from pai_install.health.evidence.document import CommandResult
from pai_install.health.judge.evaluate import Knowledge, MachineReport, evaluate
from tests.unit.health.machines import CATALOGUE, LIMITS, Box, change, h100, healthy, smi_xml

FAIL, WARN, PASS, SKIP, UNKNOWN = Verdict.FAIL, Verdict.WARN, Verdict.PASS, Verdict.SKIP, Verdict.UNKNOWN


def fleet(*boxes: Box) -> list[MachineReport]:
    expected = {box.evidence.machine: box.expected for box in boxes}
    return evaluate([box.evidence for box in boxes], Knowledge(LIMITS, CATALOGUE, expected))


def verdicts(reports: list[MachineReport], check: str) -> dict[str, Verdict]:
    return {report.name: item.verdict for report in reports for item in report.findings if item.id == check}


def finding(reports: list[MachineReport], machine: str, check: str) -> Finding:
    report = next(report for report in reports if report.name == machine)
    return next(item for item in report.findings if item.id == check)


def named(name: str) -> Box:
    return healthy(2, name)


OTHER_VBIOS = smi_xml([change(h100(index), "vbios_version", "96.00.11.00.02") for index in (0, 1)])


@pytest.mark.parametrize(
    ("check", "odd"),
    [
        ("peers-driver", lambda: named("c").output("nvidia_smi_xml", smi_xml([h100(0), h100(1)], driver="595.10"))),
        ("peers-vbios", lambda: named("c").output("nvidia_smi_xml", OTHER_VBIOS)),
        ("peers-kernel", lambda: named("c").fact("kernel", {"release": "6.1.0-41-amd64"})),
        ("peers-os", lambda: named("c").paths({"/etc/os-release": 'PRETTY_NAME="Ubuntu 24.04"'})),
        ("peers-containerd", lambda: named("c").output("containerd_version", "containerd x v2.2.0 y")),
        ("peers-toolkit", lambda: named("c").output("toolkit_version", "NVIDIA Container Toolkit CLI version 1.18.0")),
        (
            "peers-rdma-firmware",
            lambda: named("c").paths({f"/sys/class/infiniband/mlx5_{n}/fw_ver": "28.40.0" for n in (0, 1)}),
        ),
    ],
)
def test_the_odd_one_of_a_sku_is_named(check: str, odd: object) -> None:
    reports = fleet(named("a"), named("b"), odd())  # type: ignore[operator]
    assert verdicts(reports, check) == {"a": PASS, "b": PASS, "c": WARN}
    assert "2 of 3 h100" in finding(reports, "c", check).expected


def test_machines_of_different_skus_are_not_compared() -> None:
    odd = named("c").fact("kernel", {"release": "other"}).expecting(sku="else")
    reports = fleet(named("a"), named("b"), odd)
    assert verdicts(reports, "peers-kernel") == {"a": PASS, "b": PASS, "c": SKIP}


def test_half_against_half_has_no_majority() -> None:
    reports = fleet(named("a"), named("b").fact("kernel", {"release": "other"}))
    assert verdicts(reports, "peers-kernel") == {"a": SKIP, "b": SKIP}


def test_a_machine_that_does_not_say_is_unknown() -> None:
    reports = fleet(named("a"), named("b"), named("c").fact("kernel", None))
    assert verdicts(reports, "peers-kernel")["c"] is UNKNOWN


def test_what_nobody_has_is_not_mentioned() -> None:
    boxes = [named(name).command("toolkit_version", None) for name in "ab"]
    assert verdicts(fleet(*boxes), "peers-toolkit") == {}


def test_clocks_of_control_planes_are_compared() -> None:
    line = "0A000001,a,3,1790000000,{},0,0,0,0,0,0.001,0.002,64,Normal"
    boxes = [
        named(name).expecting(control_plane=True).output("chrony_tracking", line.format(offset))
        for name, offset in (("a", "0.001"), ("b", "0.002"), ("c", "0.3"))
    ]
    assert verdicts(fleet(*boxes), "peers-clock") == {"a": PASS, "b": PASS, "c": WARN}
    silent = boxes[0].command("chrony_tracking", None)
    assert verdicts(fleet(silent, *boxes[1:]), "peers-clock")["a"] is UNKNOWN


def test_clocks_of_machines_of_one_sku_are_compared_with_the_middle_one() -> None:
    line = "0A000001,a,3,1790000000,{},0,0,0,0,0,0.001,0.002,64,Normal"
    boxes = [
        named(name).output("chrony_tracking", line.format(offset))
        for name, offset in (("a", "0.001"), ("b", "-0.002"), ("c", "-0.3"))
    ]
    assert verdicts(fleet(*boxes), "peers-clock") == {"a": PASS, "b": PASS, "c": WARN}
    assert verdicts(fleet(*boxes[1:]), "peers-clock") == {}  # of two machines, either could be the odd one


def node(name: str, gpus: str | None, *, ready: str = "True", cordoned: str = "", **extra: str) -> str:
    """One line of the collector's table of nodes."""
    amounts = {"cpu": "128", **({} if gpus is None else {"nvidia.com/gpu": gpus}), **extra}
    resources = json.dumps(amounts)
    return f"{name}\t{cordoned}\t{resources}\t{resources}\t{ready}\n"


def with_nodes(text: str, *boxes: Box) -> list[MachineReport]:
    master = healthy(0, "master").expecting(device="", model="", count=None, sku="cpu", worker=False)
    nothing = {path: None for path in master.evidence.files if "nvidia" in path}
    master = master.paths(nothing).command("nvidia_smi_xml", None)
    return fleet(*boxes, master.output("kubernetes_nodes", text + node("master", None)))


@pytest.mark.parametrize(
    "result",
    [
        CommandResult(rc=1, stderr="The connection to the server 10.0.0.1:6443 was refused"),
        CommandResult(missing=True),
        CommandResult(timed_out=True),
    ],
)
def test_a_control_plane_that_does_not_answer_is_no_missing_cluster(result: CommandResult) -> None:
    reports = fleet(named("a"), named("b").expecting(control_plane=True).command("kubernetes_nodes", result))
    assert verdicts(reports, "kubernetes-ready") == {"a": UNKNOWN, "b": UNKNOWN}
    assert verdicts(reports, "kubernetes-gpus") == {"a": UNKNOWN, "b": UNKNOWN}
    assert "b: kubernetes_nodes" in finding(reports, "a", "kubernetes-ready").message
    another = with_nodes(node("a", "2"), named("a"), named("c").command("kubernetes_nodes", result))
    assert verdicts(another, "kubernetes-ready")["a"] is PASS


@pytest.mark.parametrize(("offered", "verdict"), [("8", PASS), ("2", PASS), ("7", FAIL), ("1", FAIL)])
def test_gpus_that_are_shared_by_time_are_offered_several_times(offered: str, verdict: Verdict) -> None:
    assert verdicts(with_nodes(node("a", offered), named("a")), "kubernetes-gpus") == {"a": verdict}


@pytest.mark.parametrize(
    ("line", "gpus", "ready"),
    [
        (node("a", "2"), PASS, PASS),
        (node("a", "1"), FAIL, PASS),
        (node("a", "0"), FAIL, PASS),
        (node("a", None), FAIL, PASS),
        (node("a", "3"), FAIL, PASS),
        (node("a", "2", ready="False"), PASS, FAIL),
        (node("a", "2", ready=""), PASS, UNKNOWN),
        (node("a", "2", cordoned="true"), PASS, WARN),
        (node("b", "2"), UNKNOWN, UNKNOWN),
    ],
)
def test_kubernetes_is_compared_with_layout_and_driver(line: str, gpus: Verdict, ready: Verdict) -> None:
    reports = with_nodes(line, named("a"))
    assert verdicts(reports, "kubernetes-gpus") == {"a": gpus}
    assert verdicts(reports, "kubernetes-ready")["a"] is ready


def no_offer(*boxes: Box, lines: str) -> Finding:
    """What is said of machine a, which offers none."""
    report = next(report for report in with_nodes(lines, *boxes) if report.name == "a")
    return next(finding for finding in report.findings if finding.id == "kubernetes-gpus")


def test_a_resource_that_no_machine_offers_is_no_reason_to_drain(snapshot: SnapshotAssertion) -> None:
    found = no_offer(named("a"), lines=node("a", None) + node("b", None))
    assert (found.verdict, found.action) == (FAIL, Action.CONFIG)
    assert found.message == snapshot
    assert "nvidia_device_plugin" in found.remedy
    found = no_offer(named("a"), lines=node("a", None) + node("b", "2"))
    assert (found.verdict, found.action) == (FAIL, Action.DRAIN)
    assert "nvidia-device-plugin" in found.remedy


def test_without_a_driver_it_is_the_driver_that_is_missing(snapshot: SnapshotAssertion) -> None:
    bare = named("a").command("nvidia_smi_xml", None)
    found = no_offer(bare, lines=node("a", None) + node("b", "2"))
    assert found.verdict is FAIL
    assert found.message == snapshot
    assert found.remedy == snapshot


def test_devices_of_others_need_a_plugin_of_theirs(snapshot: SnapshotAssertion) -> None:
    found = no_offer(named("a").expecting(device="amd.com/gpu"), lines=node("a", None))
    assert (found.verdict, found.action) == (FAIL, Action.CONFIG)
    assert found.remedy == snapshot


def test_mig_devices_are_compared_with_what_kubernetes_offers() -> None:
    texts = change(change(h100(), "mig_mode/current_mig", "Enabled"), "mig_mode/pending_mig", "Enabled")
    box = healthy(1, "a").gpus(change(texts, "mig_devices", "4"))
    assert verdicts(with_nodes(node("a", None, **{"nvidia.com/mig-1g.10gb": "4"}), box), "kubernetes-gpus")["a"] is PASS
    assert verdicts(with_nodes(node("a", None, **{"nvidia.com/mig-1g.10gb": "7"}), box), "kubernetes-gpus")["a"] is FAIL


def test_hung_driver_leaves_the_comparison_unknown() -> None:
    box = named("a").command("nvidia_smi_xml", replace(named("a").evidence.commands["nvidia_smi_xml"], timed_out=True))
    assert verdicts(with_nodes(node("a", "2"), box), "kubernetes-gpus")["a"] is UNKNOWN


def test_without_a_cluster_both_checks_are_skipped() -> None:
    reports = fleet(named("a"))
    assert verdicts(reports, "kubernetes-gpus") == {"a": SKIP}
    assert verdicts(reports, "kubernetes-ready") == {"a": SKIP}
