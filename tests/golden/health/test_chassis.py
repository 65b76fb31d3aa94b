"""Verdicts that need a second source: other GPUs and ports of the machine, the driver's own advice, or sysfs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pai_install.checks.verdict import Verdict
from pai_install.health.evidence.document import CommandResult, parse_evidence
from tests.golden.health.test_defects import GPU, RESET, line, loud, texts, xid
from tests.unit.health.machines import Box, Texts, bus_id, h100, healthy

BUSY = {
    "utilization/gpu_util": "98 %",
    "performance_state": "P0",
    "clocks/sm_clock": "1700 MHz",
    "clocks_event_reasons/clocks_event_reason_gpu_idle": "Not Active",
    "fb_memory_usage/used": "60000 MiB",
    "processes": "100,C,python3,60000 MiB",
}
MISMATCH = CommandResult(
    rc=18,
    stdout="Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.82\n",
    duration_s=1,
)
IB = "/sys/class/infiniband"


def several(count: int, *odd: tuple[int, dict[str, str]], base: dict[str, str] | None = None) -> Box:
    """A machine with this number of GPUs, some of them with other texts."""
    gpus: list[Texts] = [texts(base or {}, h100(index)) for index in range(count)]
    for index, changes in odd:
        gpus[index] = texts(changes, gpus[index])
    return healthy(count).gpus(*gpus)


def containers(box: Box) -> Box:
    """The processes of BUSY run in a pod."""
    return box.fact("gpu_processes", {"100": {"name": "python3", "cgroup": "0::/kubepods.slice/pod1"}})


def port(name: str, **values: str) -> dict[str, str | None]:
    return {f"{IB}/{name}/{path.replace('__', '/')}": text for path, text in values.items()}


SLOW_PORT = port("mlx5_0", ports__1__rate="200 Gb/sec (4X HDR)")
NETDEV = f"{IB}/mlx5_0/device/net/ib0/operstate"

# a driver that says nothing of remapping
UNSAID = healthy(1).gpus({path: text for path, text in h100().items() if "remapped" not in path}).expecting(count=1)

CASES: dict[str, tuple[Box, list[str]]] = {
    "GSP timeout, and a reset is enough": (
        healthy().log(xid(119, "Timeout waiting for RPC from GSP!", ago=99), xid(154, RESET, ago=98)),
        [f"FAIL gpu-xid {GPU} reset_gpu"],
    ),
    "GSP timeout alone": (healthy().log(xid(119, "Timeout waiting for RPC from GSP!")), [f"FAIL gpu-xid {GPU} reboot"]),
    "off the bus, whatever follows": (
        healthy().log(xid(79, "GPU has fallen off the bus.", ago=99), xid(154, RESET, ago=98)),
        [f"FAIL gpu-xid {GPU} reboot"],
    ),
    "power cable, by the status": (
        healthy(1).command("nvidia_smi_xml", CommandResult(rc=8, stdout="external power cables", duration_s=1)),
        ["FAIL driver-status - config"],
    ),
    "library of another version, module as on the disk": (
        healthy(1).command("nvidia_smi_xml", MISMATCH), ["FAIL driver-status - config"],
    ),
    "library of another version, and a newer module on the disk": (
        healthy(1).command("nvidia_smi_xml", MISMATCH).output("modinfo_nvidia", "580.82\n"),
        ["FAIL driver-status - reboot"],
    ),
    "nouveau drives nothing": (
        healthy(1).files(__proc__modules="nouveau 1 0 - Live\nnvidia 1 0 - Live\nnvidia_uvm 1 0 - Live\n"
                                         "nvidia_peermem 1 0 - Live"), [],
    ),
    "nouveau instead of nvidia": (
        healthy(1).files(__proc__modules="nouveau 1 0 - Live")
        .command("nvidia_smi_xml", CommandResult(rc=9, stdout="NVIDIA-SMI has failed", duration_s=1)),
        ["FAIL driver-nouveau - reboot", "FAIL driver-status - reboot"],
    ),
    "an unused port goes up and down": (
        healthy().paths({"/sys/class/net/eno2/operstate": "down"})
        .log(*(line("igb 0000:01:00.1 eno2: igb: eno2 NIC Link is Down", ago) for ago in (900, 700, 500, 300))), [],
    ),
    "a port of a bond goes up and down": (
        healthy().paths({"/sys/class/net/eno2/operstate": "down", "/sys/class/net/eno2/master/ifindex": "7"})
        .log(*(line("igb 0000:01:00.1 eno2: igb: eno2 NIC Link is Down", ago) for ago in (900, 700, 500, 300))),
        ["WARN network-carrier eno2 none"],
    ),
    "a network block device that was detached": (
        healthy().log(line("Buffer I/O error on dev nbd0, logical block 0, async page read"),
                      line("I/O error, dev nbd0, sector 0 op 0x0:(READ)")), [],
    ),
    "a network block device in use": (
        healthy().paths({"/proc/mounts": "/dev/nbd0 /data ext4 rw 0 0\n"})
        .log(line("Buffer I/O error on dev nbd0, logical block 0, async page read")),
        ["FAIL kernel-filesystems - drain"],
    ),
    "one of four InfiniBand ports at half rate": (
        healthy(8).paths(SLOW_PORT), ["FAIL rdma-ports - drain", "WARN rdma-ports mlx5_0/1 drain"],
    ),
    "a RoCE port without its interface": (
        healthy().paths({**port("mlx5_0", ports__1__link_layer="Ethernet"), NETDEV: "down"}),
        ["FAIL rdma-ports mlx5_0/1 drain"],
    ),
    "an InfiniBand port without its interface": (
        healthy().paths({NETDEV: "down"}), ["WARN rdma-ports mlx5_0/1 config"],
    ),
    "a row waits for its remapping": (
        UNSAID.log(xid(63, "Row Remapper: New row (0xd21bcf) marked for remapping, reset gpu to activate.")),
        [f"WARN gpu-xid {GPU} reset_gpu"],
    ),
    "a row waited for its remapping": (
        healthy(1).log(xid(63, "Row Remapper: New row (0xd21bcf) marked for remapping, reset gpu to activate.")), [],
    ),
    "a page is retired": (
        UNSAID.log(xid(63, "Dynamic Page Retirement: New page retired, reboot to activate (0x00000000001a2b3c).")),
        [f"WARN gpu-xid {GPU} reset_gpu"],
    ),
    "at work with a fraction of its clock": (
        containers(several(4, (2, {"clocks/sm_clock": "345 MHz"}), base=BUSY)),
        [f"WARN gpu-clock-limit {bus_id(2)} drain"],
    ),
    "at work at the power cap": (
        containers(several(4, (2, {"clocks/sm_clock": "345 MHz",
                                   "clocks_event_reasons/clocks_event_reason_sw_power_cap": "Active"}), base=BUSY)), [],
    ),
    "all of them slow": (containers(several(4, base={**BUSY, "clocks/sm_clock": "345 MHz"})), [
        f"WARN gpu-clock-limit {bus_id(index)} drain" for index in range(4)]),
    "one idle GPU is much hotter": (
        several(8, (5, {"temperature/gpu_temp": "66 C", "temperature/gpu_temp_tlimit": "21 C"})),
        [f"WARN gpu-temperature {bus_id(5)} none"],
    ),
    "one of eight at half width": (
        several(8, (5, {"pci/pci_gpu_link_info/link_widths/current_link_width": "8x"})).paths(
            {f"/sys/bus/pci/devices/{bus_id(5)}/upstream/max_link_width": None}),
        [f"FAIL gpu-pcie-width {bus_id(5)} drain"],
    ),
    "all at half width": (
        several(2, base={"pci/pci_gpu_link_info/link_widths/current_link_width": "8x"}).paths(
            {f"/sys/bus/pci/devices/{bus_id(index)}/upstream/max_link_width": None for index in range(2)}),
        [f"WARN gpu-pcie-width {bus_id(index)} config" for index in range(2)],
    ),
    "first PCIe generation at work in P2": (
        containers(healthy(1).gpus(texts(
            {**BUSY, "performance_state": "P2", "pci/pci_gpu_link_info/pcie_gen/current_link_gen": "1"}))),
        [f"WARN gpu-pcie-gen {GPU} none"],
    ),
    "cleanup of many after one fault": (
        healthy(8).log(xid(79, "GPU has fallen off the bus.", ago=60, gpu=3),
                       *(xid(45, "pid=7, name=python3, Ch 00000008", ago=58, gpu=other) for other in (0, 1, 2))),
        [f"FAIL gpu-xid {bus_id(3)} reboot"],
    ),
    "a network card that did not start": (
        healthy().log(line("mlx5_core 0000:41:00.0: probe_one:1234:(pid 9): mlx5_init_one failed with error code -12")),
        ["FAIL rdma-device-health 0000:41:00.0 reboot"],
    ),
    "revision ff without lspci": (
        healthy(1).command("lspci", None).paths({f"/sys/bus/pci/devices/{GPU}/config": "ffffffff"}),
        ["FAIL gpu-on-bus - reboot"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_exact_verdicts(name: str) -> None:
    box, expected = CASES[name]
    assert loud(box) == sorted(expected)


# check -> change that leaves it without a sound value
GAPS: dict[str, dict[str, str | None]] = {
    "gpu-clock-limit": {"clocks/sm_clock": None},
    "gpu-recovery-action": {"gpu_recovery_action": None},
}


@pytest.mark.parametrize("check", sorted(GAPS))
def test_absent_value_never_passes(check: str) -> None:
    assert healthy(1).gpus(texts(GAPS[check])).verdict(check) is Verdict.UNKNOWN


ABSURD = {
    "temperature/gpu_temp": ("999 C", "gpu-temperature"),
    "gpu_power_readings/instant_power_draw": ("99999.00 W", "gpu-power"),
    "clocks/sm_clock": ("999999 MHz", "gpu-clock-limit"),
    "pci/pci_gpu_link_info/link_widths/current_link_width": ("640x", "gpu-pcie-width"),
    "pci/pci_gpu_link_info/pcie_gen/current_link_gen": ("90", "gpu-pcie-gen"),
    "fb_memory_usage/total": ("99999999999 MiB", "gpu-memory-size"),
    "gpu_power_readings/current_power_limit": ("99999.00 W", "gpu-power-limit"),
    "temperature/memory_temp": ("1000 C", "gpu-memory-temperature"),
    "gsp_firmware_version": ("4294967295", "gpu-gsp"),
}


@pytest.mark.parametrize("path", sorted(ABSURD))
def test_value_beyond_physical_limits_never_passes(path: str) -> None:
    text, check = ABSURD[path]
    box = healthy(1).gpus(texts({**BUSY, "processes": "", "fb_memory_usage/used": "0 MiB", path: text}))
    assert box.verdict(check) is not Verdict.PASS


REAL = [json.loads(line) for line in (Path(__file__).parent / "virtual-machines.jsonl").read_text().splitlines()]
BUS = "0000:00:06.0"
QUIET = ["WARN container-cdi - config"]
UNSEEN = [
    "UNKNOWN clock-offset - none",
    "UNKNOWN clock-synchronised - none",
    "UNKNOWN driver-versions - none",
]


@pytest.mark.parametrize("document", REAL, ids=lambda document: document["hostname"])
def test_real_cards_of_virtual_machines(document: dict[str, Any]) -> None:
    """The collector's answers on machines without systemd, lspci, modinfo, and a container runtime."""
    evidence = parse_evidence("gpu-01", document)
    box = replace(healthy(1), evidence=evidence).expecting(model="", ram_bytes=None, cpus=None)
    stray = [f"WARN gpu-stray-process {BUS} none"] if document["hostname"].endswith("busy") else []
    assert loud(box) == [*QUIET, *stray]
    assert loud(box, Verdict.UNKNOWN) == UNSEEN


def test_failures_of_one_real_program_are_its_own() -> None:
    """h100-xids: one program failed four times (Xid 31, 13, 43, 13), twice on the SM where small kernels run."""
    document = next(one for one in REAL if one["hostname"] == "h100-xids")
    box = replace(healthy(1), evidence=parse_evidence("gpu-01", document)).expecting(model="", ram_bytes=None)
    found = box.finding("gpu-xid")
    assert found.verdict is Verdict.PASS
    assert found.value.startswith("2026-11-27 05:13:37 UTC: 31 ")
