"""Every piece of evidence that the collector brings is judged: what no check looks at is not collected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import pytest

from pai_install.health.collect import collector
from pai_install.health.evidence.document import CommandResult
from pai_install.health.evidence.parse.kernel_log import LogKind, parse_events
from pai_install.health.judge.evaluate import judge_machine, machine_view
from pai_install.health.judge.facts import facts_of, snapshot_of
from tests.unit.health.judge.test_missing import TWICE
from tests.unit.health.machines import Box, bus_id, change, gpu_change, h100, healthy

HEALTH = Path(collector.__file__).parents[1]
JUDGES = "\n".join(path.read_text() for path in sorted((HEALTH / "judge").rglob("*.py")))
TABLES = collector.COMMANDS + collector.AFTER_DRIVER + collector.DRIVER_REFUSED + collector.DEEP + collector.LATER_LOOKS
COMMANDS = sorted({line.split("|")[0].strip() for line in TABLES.splitlines() if "|" in line})
PCI = "/sys/bus/pci/devices/*/"
FABRIC = "/sys/class/infiniband/*/"
FILES = [
    *collector.HOST_FILES.split(),
    *collector.DRIVER_FILES.split(),
    *(PCI + name for name in collector.PCI_NAMES.split()),
    PCI + "upstream/max_link_width",
    PCI + "upstream/acs",
    *(FABRIC + name for name in collector.FABRIC_NAMES.split()),
    "/var/log/fabricmanager.log",
]
SWAPS = "Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition 8 0 -2"
CDI = "/var/run/cdi/nvidia.yaml"
NARROW = change(h100(0), "pci/pci_gpu_link_info/link_widths/current_link_width", "8x")
FLAPPING = TWICE.paths({"/sys/class/net/ib0/operstate": "down"}).log(
    *["2026-09-21T14:10:00+0000 h kernel: mlx5_core 0000:01:00.0 ib0: Link down"] * 4
)
# machines on which one or another piece of evidence decides
BASES: list[Box] = [
    TWICE,
    TWICE.paths({"/proc/swaps": SWAPS, "/var/lib/kubelet/config.yaml": "failSwapOn: false"}),
    TWICE.paths({"/etc/cdi/nvidia.yaml": healthy().evidence.files[CDI], CDI: None}),
    TWICE.command("lspci", CommandResult(missing=True)),
    TWICE.gpus(NARROW, h100(1)).paths({f"/sys/bus/pci/devices/{bus_id(0)}/max_link_width": "16"}),
    healthy(8),
    TWICE.paths({"/sys/class/infiniband/mlx5_0/ports/1/hw_counters/rnr_nak_retry_err": "1"}),
    TWICE.paths({"/sys/fs/cgroup/cgroup.controllers": None, "/run/systemd/container": "systemd-nspawn"}),
    FLAPPING,
    FLAPPING.paths({"/sys/class/net/ib0/master/ifindex": "7"}),
    healthy(8).paths({
        **{f"/sys/class/infiniband/mlx5_{port}/board_id": "MT_0000000838" for port in range(8)},
        "/sys/class/infiniband/mlx5_0/ports/1/rate": "200 Gb/sec (4X HDR)",
        "/sys/class/infiniband/mlx5_1/device/net/ib1/operstate": "down",
    }),
]  # fmt: skip
LOG = "[Nov 24 2026 09:00:00] [ERROR] [tid 1] detected NVSwitch fatal error 20034"
OTHERS = [None, "", "banana", "0", "9", "999999", "DMA", "0000:15:00.0 0x1d", "8", "TOTAL_ERR_FATAL 4", LOG,
          "TOTAL_ERR_NONFATAL 7", "TOTAL_ERR_COR 999999", "1: DOWN", "Ethernet", "nouveau 1 0 - Live"]  # fmt: skip


def judged(box: Box) -> object:
    """Everything that is concluded of a machine."""
    view = machine_view(box.evidence, replace(box.knowledge, expected={box.evidence.machine: box.expected}))
    findings = tuple(judge_machine(view))
    return findings, facts_of(view), snapshot_of(view, findings)


# the collector's own question: which fields the answer nvidia_smi_csv may have
COMMANDS.remove("nvidia_smi_fields")


@pytest.mark.parametrize("name", [*COMMANDS, "nvidia_smi_xml", "nvidia_smi_csv", "kubernetes_nodes"])
def test_a_command_s_answer_is_read_by_a_check(name: str) -> None:
    assert f'"{name}"' in JUDGES


def readers(pattern: str) -> Iterator[tuple[Box, str]]:
    for box in BASES:
        for path in box.evidence.files:
            if fnmatch(path, pattern):
                yield box, path


@pytest.mark.parametrize("pattern", FILES)
def test_a_file_decides_something(pattern: str) -> None:
    cases = list(readers(pattern))
    assert cases, f"no machine of this test has {pattern}"
    for box, path in cases:
        before = judged(box)
        if any(judged(box.paths({path: text})) != before for text in OTHERS):
            return
    pytest.fail(f"no check looks at {pattern}")


def read_kernel() -> dict[str, object]:
    found: dict[str, object] = collector.read_kernel()
    return found


@pytest.mark.parametrize("key", sorted(read_kernel()))
def test_a_fact_of_the_kernel_decides_something(key: str) -> None:
    kernel = dict(TWICE.evidence.facts["kernel"])
    changes: list[object] = [None, True, "5.4.0", ["libnvidia-ml.so.470.1.1"], 1]
    assert any(judged(TWICE.fact("kernel", {**kernel, key: value})) != judged(TWICE) for value in changes)


@pytest.mark.parametrize("name", [name for name, _ in collector.READERS])
def test_a_reader_s_answer_decides_something(name: str) -> None:
    assert judged(TWICE.fact(name, None)) != judged(TWICE)


@pytest.mark.parametrize("field", collector.CSV_FIELDS.split())
def test_a_field_of_the_csv_is_one_that_a_check_reads(field: str) -> None:
    fields = (HEALTH / "evidence" / "fields.py").read_text()
    assert field in ("pci.bus_id", "kmd_version") or f"csv/{field}" in fields


# one line of each kind that the collector keeps on purpose
LINES = {
    LogKind.GPU_START: "NVRM: GPU 0000:18:00.0: RmInitAdapter failed! (0x24:0x65:1185)",
    LogKind.NVLINK_START: "NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!",
    LogKind.KERNEL_FAULT: "BUG: unable to handle page fault for address: ffff9c",
    LogKind.RDMA_DEVICE: "mlx5_core 0000:01:00.0: device's health compromised - reached miss count",
    LogKind.AER_FATAL: f"pcieport {bus_id(0)}: AER: Uncorrected (Fatal) error received: {bus_id(0)}",
    LogKind.AER_NONFATAL: f"pcieport {bus_id(0)}: AER: Uncorrected (Non-Fatal) error received: {bus_id(0)}",
    LogKind.MACHINE_CHECK: "mce: [Hardware Error]: Machine check events logged",
    LogKind.HUNG_TASK: "INFO: task python:77 blocked for more than 120 seconds.",
    LogKind.FILESYSTEM: "EXT4-fs error (device sda1): ext4_find_entry",
    LogKind.OUT_OF_MEMORY: "Out of memory: Killed process 5 (python)",
    LogKind.LINK_LIMITED: f"pci {bus_id(0)}: 63.008 Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe x4 link "
    "at 0000:16:01.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)",
    LogKind.CARRIER_LOST: "mlx5_core 0000:01:00.0 ib0: Link down",
    LogKind.MODULE_REJECTED: "nvidia: Key was rejected by service",
    LogKind.GPU_LOCKED: "NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7",
    LogKind.NETWORK_DEVICE: "NETDEV WATCHDOG: eth1 (ixgbe): transmit queue 0 timed out",
    LogKind.NFS_SERVER: "nfs: server 192.0.2.60 not responding, still trying",
    LogKind.SXID: "nvidia-nvswitch3: SXid (PCI:0000:86:00.0): 20034, Fatal, Link 61",
}


def test_every_kind_of_line_is_here() -> None:
    assert set(LINES) == set(LogKind)


@pytest.mark.parametrize("kind", LINES)
def test_a_line_of_the_kernel_is_kept_and_decides_something(kind: LogKind) -> None:
    line = f"2026-09-21T14:10:00+0000 h kernel: {LINES[kind]}"
    kept = collector.LogLines()
    kept.feed(line.encode())
    assert kept.text() == line
    assert [event.kind for event in parse_events(line)] == [kind]
    box = TWICE.output("secure_boot", "SecureBoot enabled")
    assert judged(box.log(*[line] * 4)) != judged(box)


@pytest.mark.parametrize("row", range(len(collector.KERNEL_KINDS)))
def test_a_row_of_the_kernel_s_table_has_a_reader(row: int) -> None:
    """The last rows are for Xids, and cards off the bus."""
    words, fits = collector.KERNEL_KINDS[row]
    lines = [*LINES.values(), "NVRM: Xid (PCI:0000:18:00): 79, x", "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus",
             "mlx5: event[error]: module 0",
             "mlx5_core 0000:01:00.0: mlx5_load_one failed with error code -22",
             "XFS (sda1): Internal error", "I/O error, dev sda", "EDAC MC4: 1 CE memory read error",
             "NVRM: RmFetchGspRmImages: No firmware image found", "mlx5_core 0000:01:00.0: device is in error",
             "nvme nvme0: controller is down",
             "mpt3sas_cm0: fault_state(0x5862)!", "NVRM: nouveau, rivafb"]  # fmt: skip
    assert any(any(word in line.encode() for word in words) and fits.search(line) for line in lines)


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: knvlinkUpdateLinkConnectionStatus_IMPL: failed to update link 7",
        "NVRM: knvlinkCoreShutdown: Link is down",
        "NVRM: nvAssertFailedNoLog: Assertion failed: 0 @ kern_bus_gm107.c:2394",
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.105.08",
        "nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver",
        "nvidia 0000:18:00.0: enabling device (0140 -> 0142)",
        "mlx5_core 0000:01:00.0: failed to set the speed",
        "zfs: module verification failed: signature and/or required key missing - tainting kernel",
        "usb 1-1: USB disconnect, device number 4",
    ],
)
def test_what_no_check_understands_is_not_collected(line: str) -> None:
    kept = collector.LogLines()
    kept.feed(f"2026-09-21T14:10:00+0000 h kernel: {line}".encode())
    assert kept.text() == ""


def test_the_test_sees_a_change_and_no_other() -> None:
    assert judged(TWICE) == judged(TWICE)
    assert judged(gpu_change("persistence_mode", "Disabled")(TWICE)) != judged(TWICE)
