"""Lines that public logs show and no other test has: a machine that is well but for them, and the exact verdicts."""

from __future__ import annotations

import pytest

from pai_install.health.collect.collector import LogLines
from pai_install.health.evidence.document import CommandResult
from pai_install.health.evidence.parse.kernel_log import parse_events, parse_xids
from tests.golden.health.test_defects import GPU, line, loud, xid
from tests.unit.health.machines import Box, gpu_change, healthy

RESET, REBOOT = [f"FAIL gpu-xid {GPU} reset_gpu"], [f"FAIL gpu-xid {GPU} reboot"]
DISK = ["FAIL kernel-filesystems - drain"]
SLOT, PORT = GPU[:-2], "0000:15:00.0"  # of the test machine's first GPU, and above it
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
    "48, 171 and 63 of one row of memory": (
        [xid(48, "pid=812, name=VLLM::Worker_TP, An uncorrectable double bit error (DBE) has been detected on "
              "GPU in the "
                 "framebuffer at physAddr 0x7fffa8860 partition 9, subpartition 1."),
         xid(171, "pid=812, name=VLLM::Worker_TP, Uncorrectable DRAM error"),
         xid(63, "pid=812, name=x, Row Remapper: New row (0x0000000000abc) marked for remapping, reset gpu to "
               "activate."),
         xid(94, "pid=812, name=x, Contained: HBM"),
         xid(154, "pid=812, name=x, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)")], RESET,
    ),
    "79 and what hangs on the card": (
        [line(f"NVRM: Xid (PCI:{SLOT}): 79, pid=0, GPU has fallen off the bus."), line(f"NVRM: GPU {GPU}: GPU "
              f"is on Board ."),
         line("nvidia-gpu 0000:18:00.3: Refused to change power state, currently in D3"),
         line("xhci_hcd 0000:18:00.2: HC died; cleaning up")], REBOOT,
    ),
    "120 with its registers": (
        [line(f"NVRM: Xid (PCI:{SLOT}): 120, GSP task exception: store access page fault (cause:0xf) @ pc:0x13ebd80, "
              "partition:2#0, task:3"),
         line("NVRM:     Reported by libos partition:2#4 kernel v3.1 [0] @ ts:1770232285")], REBOOT,
    ),
    "119 and 154 to a reboot": (
        [xid(119, "pid=2109, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU0 GSP! "
              "Expected function "
                  "76 (GSP_RM_CONTROL) (0x20800a4c 0x4)."),
         xid(154, "pid=2109, name=x, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot "
               "Required)")], REBOOT,
    ),
    "31 of a new driver": (
        [xid(31, "pid=36022, name=python, channel 0x00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC0 "
              "GPCCLIENT_T1_0 "
                 "faulted @ 0x7f6b_c6000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE")], [],
    ),
    "firmware that does not start, its cause in another line": (
        [line("NVRM: GPU6 _kgspBootGspRm: unexpected WPR2 already up, cannot proceed with booting GSP"),
         line("NVRM: GPU6 RmInitAdapter: Cannot initialize GSP firmware RM"),
         line("NVRM: GPU 0000:a1:00.0: RmInitAdapter failed! (0x62:0x40:2168)"),
         line("NVRM: GPU 0000:a1:00.0: rm_init_adapter failed, device minor number 7")],
        ["FAIL gpu-driver-start 0000:a1:00.0 reboot"],
    ),
    "a port above the GPU: surprise down": (
        [line(f"pcieport {PORT}: AER: Corrected error received: id=0010"),
         line(f"pcieport {PORT}: AER: Uncorrected (Fatal) error received: id=0010"),
         line(f"pcieport {PORT}: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, "
               f"id=0010(Receiver ID)"),
         line(f"pcieport {PORT}:    [ 5] Surprise Down Error    (First)")], ["FAIL pcie-aer - drain"],
    ),
    "a port above the GPU: contained": (
        [line(f"pcieport {PORT}: DPC: containment event, status:0x1f01 source:0x0000"),
         line(f"pcieport {PORT}: DPC: unmasked uncorrectable error detected"),
         line(f"pcieport {PORT}: pciehp: Slot(5): Link Down"), line(f"pcieport {PORT}: pciehp: Slot(5): Card "
               f"not present")],
        ["FAIL pcie-aer - drain"],
    ),
    "a GPU whose driver cannot recover": (
        [line(f"nvidia {GPU}: AER: can't recover (no error_detected callback)")], ["WARN pcie-aer - none"],
    ),
    "corrected, as AMD's ports say it": (
        [line(f"pcieport {PORT}: AER: Correctable error message received from {GPU}"),
         line(f"pcieport {PORT}: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)")], [],
    ),
    "slots and disks without a link are no network": (
        [*[line("ata3: SATA link down (SStatus 0 SControl 300)")] * 5, *[line("pciehp: Slot(5): Link Down")] * 5], [],
    ),
    "memory error that AMD's processor corrected": (
        [line("[Hardware Error]: Corrected error, no action required."),
         line("[Hardware Error]: CPU:2 (17:31:0) MC18_STATUS[Over|CE|MiscV|AddrV|-|-|SyndV|CECC|-|-|-]: "
               "0xdc2040000000011b"),
         line("[Hardware Error]: Unified Memory Controller Ext. Error Code: 0, DRAM ECC error."),
         line("EDAC MC0: 1 CE on mc#0csrow#2channel#1 (csrow:2 channel:1 page:0x1 offset:0x1 grain:64)")], [],
    ),
    "error that the firmware corrected": (
        [line("{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 4"),
         line("{1}[Hardware Error]: It has been corrected by h/w and requires no further action"),
         line("{1}[Hardware Error]: event severity: corrected"), line("{1}[Hardware Error]:  Error 0, type: "
               "corrected")], [],
    ),
    "corrected, and one that was not": (
        [line("[Hardware Error]: Corrected error, no action required."),
         line("mce: [Hardware Error]: CPU 32: Machine Check Exception: 5 Bank 1: bd80000000100134")],
        ["WARN kernel-machine-checks - none"],
    ),
    "APEI, recoverable": (
        [line("{2}[Hardware Error]: event severity: recoverable"), line("{2}[Hardware Error]:  Error 0, type: fatal")],
        ["WARN kernel-machine-checks - none"],
    ),
    "a disk of NVMe that is gone": (
        [line("nvme nvme0: I/O 123 QID 3 timeout, aborting"),
         line("nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff"),
         line("nvme nvme0: Removing after probe failure status: -19")], DISK,
    ),
    "a bad sector": ([line("critical medium error, dev sda, sector 3905945600 op 0x0:(READ) flags 0x80700")], DISK),
    "a lost write": ([line("Buffer I/O error on dev sda1, logical block 1234, lost async page write")], DISK),
    "XFS: metadata": (
        [line('XFS (dm-0): metadata I/O error in "xfs_trans_read_buf_map" at daddr 0x1 len 8 error 5')], DISK,
    ),
    "XFS: shut down": ([line("XFS (sda1): Filesystem has been shut down due to log error (0x2).")], DISK),
    "ext4: journal": ([line("JBD2: Error -5 detected when updating journal superblock for sda1-8.")], DISK),
    "no disk in the drive": ([line("Buffer I/O error on dev sr0, logical block 0, async page read")], []),
    "a transceiver": (
        [line("mlx5_core 0000:c1:00.0: Port module event[error]: module 0, Cable error, Bus stuck (I2C or data "
              "shorted)")],
        ["WARN rdma-device-health 0000:c1:00.0 config"],
    ),
    "a transceiver, days ago": (
        [line("mlx5_core 0000:c1:00.0: Port module event[error]: module 0, Cable error, Unknown identifier",
              300_000)], [],
    ),
    "too little power for a network card": (
        [line("mlx5_core 0000:c1:00.0: mlx5_pcie_event:304:(pid 5): Detected insufficient power on the PCIe "
              "slot (27W).")],
        ["WARN rdma-device-health 0000:c1:00.0 config"],
    ),
    "enough power, and a cable that was pulled": (
        [line("mlx5_core 0000:c1:00.0: mlx5_pcie_event:299:(pid 5): PCIe slot advertised sufficient power (75W)."),
         line("mlx5_core 0000:c1:00.0: Port module event: module 0, Cable unplugged")], [],
    ),
    "memory errors that were corrected, by EDAC": (
        [line("EDAC skx MC4: HANDLING MCE MEMORY ERROR"),
         line("EDAC MC4: 1 CE memory read error on CPU_SrcID#1_MC#0_Chan#0_DIMM#0 (channel:0 slot:0)")], [],
    ),
    "memory error that was not, by EDAC": (
        [line("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0)")],
        ["WARN kernel-machine-checks - none"],
    ),
    "divide error": ([line("divide error: 0000 [#1] SMP NOPTI")], ["WARN kernel-oops - reboot"]),
    "a namespace that does not end": (
        [line("unregister_netdevice: waiting for lo to become free. Usage count = 2")],
        ["WARN kernel-hung-tasks - none"],
    ),
    "a lost write, as older kernels say it": ([line("Buffer I/O error on device sdb1, logical block 7")], DISK),
    "hard lockup": ([line("watchdog: Watchdog detected hard LOCKUP on cpu 5")], ["WARN kernel-hung-tasks - none"]),
    "stall": ([line("rcu: INFO: rcu_preempt self-detected stall on CPU")], ["WARN kernel-hung-tasks - none"]),
    "warm processors": (
        [line("mce: CPU3: Core temperature is above threshold, cpu clock is throttled (total events = 1)")], [],
    ),
    "SXid of a sourcetrack": (
        [line("nvidia-nvswitch2: SXid (PCI:0000:04:00.0): 24007, Non-fatal, Link 44 sourcetrack timeout error (First)"),
         line("nvidia-nvswitch2: SXid (PCI:0000:04:00.0): 24007, Severity 0 Engine instance 44 Sub-engine "
               "instance 00")],
        SWITCH_WARN,
    ),
    "NVLinks whose other end is not found": (
        [line("NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!"),
         line("NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!")],
        ["FAIL nvlink-driver-start - reboot"],
    ),
    "NVLinks whose other end was not found, days ago": (
        [line("NVRM: knvlinkDiscoverPostRxDetLinks_GB100_REV2: Getting peer17 postRxDetLinkMask failed!", 300_000)],
        ["WARN nvlink-driver-start - reboot"],
    ),
    "NVLinks that were trained": ([line("NVRM: NVLink link training completed")], []),
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


@pytest.mark.parametrize("name", LOGS)
def test_the_collector_keeps_what_decides(name: str) -> None:
    """Of the same lines, as they come from a machine."""
    lines, expected = LOGS[name]
    kept = LogLines()
    kept.feed("\n".join(lines).encode())
    assert loud(healthy().log(*kept.text().splitlines())) == sorted(expected)


@pytest.mark.parametrize("name", LOGS)
def test_what_the_collector_keeps_is_understood(name: str) -> None:
    """Each line by itself; of a GPU off the bus the first of three lines only says which."""
    for text in LOGS[name][0]:
        kept = LogLines()
        kept.feed(text.encode())
        understood = parse_xids(text) or parse_events(text) or "The NVIDIA GPU" in text or "fallen off" in text
        assert understood or not kept.text(), text


def test_the_cause_of_a_start_that_failed_is_named() -> None:
    box = healthy().log(*LOGS["firmware that does not start, its cause in another line"][0])
    assert "its firmware (GSP) does not start" in box.finding("gpu-driver-start").message


def test_the_link_and_its_cause_are_named() -> None:
    box = healthy().log(*LOGS["74 connection"][0])
    assert "NVLink error, link 6: the connection" in box.finding("gpu-xid").message
