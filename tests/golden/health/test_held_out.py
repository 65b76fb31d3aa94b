"""Lines that public logs show and no other test has: a machine that is well but for them, and the exact verdicts."""

from __future__ import annotations

import pytest

from pai_install.health.evidence.document import CommandResult
from tests.golden.health.test_defects import GPU, line, loud, xid
from tests.unit.health.machines import Box, gpu_change, healthy

RESET, REBOOT = [f"FAIL gpu-xid {GPU} reset_gpu"], [f"FAIL gpu-xid {GPU} reboot"]
SLOT = GPU[:-2]
SWITCH = "nvidia-nvswitch3: SXid (PCI:0000:04:00.0): "
SWITCH_WARN = ["WARN nvswitch-sxid 0000:04:00.0 none"]


def dead(status: int, text: str) -> Box:
    """A machine whose nvidia-smi ends so."""
    return healthy(1).command("nvidia_smi_xml", CommandResult(rc=status, stdout=text, duration_s=1))


def link(registers: str, number: int = 14) -> str:
    return xid(74, f"pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link {number}({registers})")


LOGS: dict[str, tuple[list[str], list[str]]] = {
    "13 of an old driver": ([line(f"NVRM: Xid ({SLOT}): 13, 0003 00000000 00008297 00001098 00000000 00000044")], []),
    "8 of an old driver": ([line(f"NVRM: Xid ({SLOT}): 8, Channel 00000020")], []),
    "14 of an old driver": ([line(f"NVRM: Xid ({SLOT}): 14, Channel 00000001")], []),
    "43 of a program": ([xid(43, "pid=3188489, name=trigger_xid, channel 0x0b00000a")], []),
    "48 without PCI": ([line(f"NVRM: Xid ({SLOT}): 48, pid='<unknown>', name=<unknown>, Ch 00000008")], RESET),
    "51 and what it asks": (
        [xid(51, "BAD_TSG encountered on runlist: 0 with error code: 4"),
         xid(154, "GPU recovery action changed from 0x0 (None) to 0x1 (PF FLR)")], RESET,
    ),
    "62 beside 74": ([xid(62, "pid=0, 09d4 00000000 ...")], RESET),
    "64 failed": ([xid(64, "pid='N/A', Row Remapper: Failed to remap row")], RESET),
    "74 without registers": ([xid(74, "pid=..., NVLink: Fatal error detected on link 4")], RESET),
    "74 repeated": ([link("0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0")], RESET),
    "74 connection": ([link("0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", 6)], RESET),
    "74 corrected": (
        [link("0x0, 0x0, 0x0, 0x0, 0x100000, 0x0, 0x0")], [f"WARN gpu-xid {GPU} none"],
    ),
    "74 to be ignored": ([link("0x40000001, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0")], []),
    "74 unknown bits": ([link("0x0, 0x80000000, 0x0, 0x0, 0x100000, 0x0, 0x0")], RESET),
    "79 and 154 to a reboot": (
        [xid(79, "GPU has fallen off the bus."), line(f"NVRM: GPU {GPU}: GPU has fallen off the bus."),
         xid(154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)")], REBOOT,
    ),
    "79 with unknown process": ([xid(79, "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")], REBOOT),
    "94": ([xid(94, "pid=1234, name=python3, Contained ECC error")], [f"WARN gpu-xid {GPU} drain"]),
    "144 SAW_MVB": (
        [xid(144, "SAW_MVB Nonfatal XC0 i0 Link 0 (0x00000001 0x00000008 0x0 0x0 0x0 0x0)")],
        [f"WARN gpu-xid {GPU} none"],
    ),
    "145 with a word for another": (
        [xid(145, "RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x00000001 0x0 0x00100000 0x4)")],
        [f"WARN gpu-xid {GPU} none"],
    ),
    "149 of no link": ([xid(149, "NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000 0x0 0x0 0x0 0x0)")], RESET),
    "149 by its host": (
        [xid(149, "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6 0x00000000 0x0 0x0 0x0 0x0)")],
        [f"WARN gpu-xid {GPU} none"],
    ),
    "149 by its peer": (
        [xid(149, "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000 0x0 0x0 0x0 0x0)")], RESET,
    ),
    "45 after 145": ([xid(45, "pid=1818992, name=python3, Ch 0000000c caused by previous Xid 145")], RESET),
    "137": (
        [xid(137, "RLW_RXPIPE interrupt hit on link 11 on GPU0: PRIV Error")], [f"WARN gpu-xid {GPU} none"],
    ),
    "off the bus in three lines": (
        [line(f"NVRM: The NVIDIA GPU {GPU}"), line("NVRM: (PCI ID: 10de:26b5) installed in this system has"),
         line("NVRM: fallen off the bus and is not responding to commands.")], REBOOT,
    ),
    "SXid 12028 with its data": (
        [line(SWITCH + "12028, Data {0x000001c0, 0x00bd5c8a, 0x00000500}")], SWITCH_WARN,
    ),
    "SXid 22013 with its data": (
        [line(SWITCH + "22013, Data {0x0000002b, 0x0000002b}"),
         line(SWITCH + "22013, Non-fatal, Link 44 Minion Link DLREQ interrupt"),
         line(SWITCH + "22013, Severity 0 Engine instance 44 Sub-engine instance 00")], [],
    ),
    "SXid that says non-fatal in one of its lines": (
        [line(SWITCH + "12020, Data {0x0000002b, 0x0000002b}"),
         line(SWITCH + "12020, Non-fatal, Link 44 egress sequence ID error"),
         line(SWITCH + "12020, Severity 0 Engine instance 44 Sub-engine instance 00")], SWITCH_WARN,
    ),
}  # fmt: skip
# nvidia-smi's end -> the checks that must FAIL
ENDS = {
    "off the bus": dead(15, "Unable to determine the device handle for GPU0000:18:00.0: GPU is lost."),
    "no devices": dead(6, "No devices were found"),
    "other driver": dead(18, "Failed to initialize NVML: Driver/library version mismatch"),
    "infoROM": dead(14, "WARNING: infoROM is corrupted at gpu 0000:18:00.0"),
}
VALUES = {
    "temperature/gpu_temp": ("[Unknown Error]", [f"FAIL gpu-readable {GPU} reboot"]),
    "gpu_power_readings/instant_power_draw": ("[N/A]", []),
    "remapped_rows/remapped_row_pending": ("Yes", [f"WARN gpu-remap-pending {GPU} reset_gpu"]),
    "gpu_recovery_action": ("Drain and Reset", [f"FAIL gpu-recovery-action {GPU} reset_gpu"]),
}


@pytest.mark.parametrize("name", LOGS)
def test_lines_of_the_kernel_s_log(name: str) -> None:
    lines, expected = LOGS[name]
    assert loud(healthy().log(*lines)) == sorted(expected)


@pytest.mark.parametrize("name", ENDS)
def test_ends_of_nvidia_smi(name: str) -> None:
    assert any(found.startswith("FAIL driver-status") for found in loud(ENDS[name]))


@pytest.mark.parametrize("path", VALUES)
def test_values_of_nvidia_smi(path: str) -> None:
    text, expected = VALUES[path]
    assert loud(gpu_change(path, text)(healthy())) == expected


def test_the_link_and_its_cause_are_named() -> None:
    box = healthy().log(*LOGS["74 connection"][0])
    assert "NVLink error, link 6: the connection" in box.finding("gpu-xid").message
