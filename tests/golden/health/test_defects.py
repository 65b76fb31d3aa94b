"""The smallest case of every defect that a review found: a machine that is well but for it, and the exact verdicts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_install.checks.verdict import Verdict
from pai_install.health.collect import collector
from pai_install.health.evidence.document import CommandResult
from pai_install.health.html import html
from pai_install.health.judge.evaluate import machine_view
from pai_install.health.judge.facts import snapshot_of
from pai_install.health.judge.xid import meaning_of
from pai_install.health.memory.snapshot import Baseline, PastIncident, Snapshot, parse_snapshot
from pai_install.health.report import HealthReport
from pai_install.health.report import text as text_of
from tests.unit.health.machines import (
    BOOT,
    CATALOGUE,
    NOW,
    Box,
    Texts,
    bus_id,
    change,
    gpu_change,
    h100,
    healthy,
    ran,
    smi_xml,
    uuid,
    volta,
)

GPU, OTHER = bus_id(0), bus_id(1)
FLAGS = ("gpu_reset_status/reset_required", "gpu_reset_status/drain_and_reset_recommended")
OLD_DRIVER = ["WARN driver-branch - config"]


def loud(box: Box, *verdicts: Verdict) -> list[str]:
    """FAIL and WARN, or these verdicts, as "VERDICT check device action"."""
    wanted = verdicts or (Verdict.FAIL, Verdict.WARN)
    found = [item for item in box.report().findings if item.verdict in wanted]
    return sorted(f"{item.verdict.value} {item.id} {item.device or '-'} {item.action.value}" for item in found)


def line(text: str, ago: float = 60) -> str:
    """A line of the journal, so many seconds before the collection."""
    return f"{datetime.fromtimestamp(NOW - ago, UTC):%Y-%m-%dT%H:%M:%S}+0000 gpu-01 kernel: {text}"


def xid(number: int, text: str = "", *, ago: float = 60, gpu: int = 0) -> str:
    return line(f"NVRM: Xid (PCI:{bus_id(gpu)[:-2]}): {number}, {text}", ago)


def texts(changes: Mapping[str, str | None], base: Texts | None = None) -> Texts:
    """A GPU's texts with some of them different."""
    found = base or h100(0)
    for path, text in changes.items():
        found = change(found, path, text)
    return found


def driver535(changes: Mapping[str, str | None]) -> Box:
    """A machine with a driver of 535, whose GPU says of resets what `changes` say."""
    driver = "535.247.01"
    old = texts({"gpu_recovery_action": None, **dict.fromkeys(FLAGS, "No"), "gsp_firmware_version": driver, **changes})
    box = healthy(1).output("nvidia_smi_xml", smi_xml([old], driver=driver))
    box = (
        box.output("modinfo_nvidia", driver)
        .output("dpkg_nvidia", "")
        .fact(
            "kernel", {"release": "6.1.0-40-amd64", "cpus": 128, "headers": True, "nvml": [f"libnvidia-ml.so.{driver}"]}
        )
    )
    version, cdi = "/proc/driver/nvidia/version", "/var/run/cdi/nvidia.yaml"
    return box.paths(
        {
            version: f"NVRM version: NVIDIA UNIX Open Kernel Module  {driver}  Release Build",
            cdi: 'kind: nvidia.com/gpu\ndevices:\n- name: "0"\n- name: all\n',
        }
    )


NO_LINKS = f"GPU 0: x (UUID: {uuid(0)})\n"


def two_boots(number: int) -> list[Snapshot]:
    """Two earlier boots in which the first GPU had this Xid."""
    return [
        Snapshot(NOW - ago, str(ago), incidents=(PastIncident(number, uuid(0), str(ago), NOW - ago),))
        for ago in (200_000, 100_000)
    ]


RESET = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
NONE = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
NETIR = "NETIR_LINK_EVT Fatal XC1 i0 Link 00 (0x016415c6 0x00000000 0x00000000 0x00000000)"
SAME_LINK = f"FAIL gpu-xid-same-link {GPU} "
RESEAT, PARITY, AFTER_ANOTHER = "0x10000, 0x0, 0x0", "0x0, 0x0, 0x1", "0x100000, 0x0, 0x0"


def link_errors(registers: str, *ago_of_link: tuple[int, int]) -> list[str]:
    """Xids 74 of the first GPU: (seconds before the collection, link)."""
    said = "pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link"
    return [xid(74, f"{said} {number}({registers})", ago=ago) for ago, number in ago_of_link]


def link_boots(link: str) -> list[Snapshot]:
    """Two earlier boots in which this link of the first GPU failed."""
    past = two_boots(74)
    return [replace(item, incidents=tuple(replace(one, link=link) for one in item.incidents)) for item in past]


FORTY_PROCESSES = [
    entry
    for number in range(40)
    for entry in (
        xid(
            13, "pid='<unknown>', name=<unknown>, Graphics SM Warp Exception on (GPC 1, TPC 2, SM 0)", ago=9000 - number
        ),
        xid(43, f"pid={7000 + number % 7}, name=python, Ch 00000008", ago=9000 - number),
    )
]

# defect of the review and case -> machine, exact FAIL and WARN
CASES: dict[str, tuple[Box, list[str]]] = {
    "1 no reset": (driver535({}), OLD_DRIVER),
    "1 reset required": (
        driver535({FLAGS[0]: "Yes"}), ["FAIL gpu-recovery-action 0000:18:00.0 reset_gpu", *OLD_DRIVER],
    ),
    "1 drain and reset": (
        driver535({FLAGS[1]: "Yes"}), ["FAIL gpu-recovery-action 0000:18:00.0 reset_gpu", *OLD_DRIVER],
    ),
    "1 reset beside what cannot be read": (
        driver535({FLAGS[0]: "Yes", "gpu_power_readings/instant_power_draw": "Unknown Error"}),
        [
            "FAIL gpu-power 0000:18:00.0 reset_gpu",
            "FAIL gpu-readable 0000:18:00.0 reset_gpu",
            "FAIL gpu-recovery-action 0000:18:00.0 reset_gpu",
            *OLD_DRIVER,
        ],
    ),
    "2 GH200": (
        healthy(1).gpus(texts({"product_name": "NVIDIA GH200 480GB", "fb_memory_usage/total": "97871 MiB"}))
        .expecting(model="GH200").output("nvidia_smi_nvlink", NO_LINKS),
        [],
    ),
    "2 GH200 144G": (
        healthy(1).gpus(texts({"product_name": "NVIDIA GH200 144G HBM3e", "fb_memory_usage/total": "147456 MiB"}))
        .expecting(model="GH200").output("nvidia_smi_nvlink", NO_LINKS),
        [],
    ),
    "3 RmInitAdapter of a GPU that is gone": (
        healthy(1).expecting(count=1).log(line("NVRM: GPU 0000:19:00.0: RmInitAdapter failed! (0x24:0x65:1185)"),
                                          line("NVRM: GPU 0000:19:00.0: rm_init_adapter failed, device minor number")),
        ["FAIL gpu-driver-start 0000:19:00.0 reboot"],
    ),
    "3 RmInitAdapter without a name": (
        healthy(1).command("nvidia_smi_xml", CommandResult(rc=6, stdout="No devices were found\n", duration_s=1))
        .log(line("NVRM: RmInitAdapter failed! (0x26:0xffff:1098)"), line("NVRM: rm_init_adapter(0) failed")),
        [
            "FAIL driver-status - reboot",
            "FAIL gpu-driver-start - reboot",
        ],
    ),
    "3 RmInitAdapter, and it came": (
        healthy(1).log(line(f"NVRM: GPU {GPU}: RmInitAdapter failed! (0x24:0x65:1185)")),
        ["WARN gpu-driver-start 0000:18:00.0 none"],
    ),
    "3 nouveau holds it": (
        healthy(1).command("nvidia_smi_xml", CommandResult(rc=9, stdout="NVIDIA-SMI has failed", duration_s=1))
        .log(line("NVRM: The NVIDIA probe routine was not called for 1 device(s)."),
             line("NVRM: This can occur when a driver such as:"), line("NVRM: nouveau, rivafb, nvidiafb or rivatv"),
             line("NVRM: No NVIDIA devices probed.")),
        ["FAIL driver-status - reboot", "FAIL gpu-driver-start - config"],
    ),
    "4 an application's fault, then off the bus": (
        healthy().log(xid(13, "pid=1, name=a", ago=120), xid(79, "GPU has fallen off the bus.")),
        ["FAIL gpu-xid 0000:18:00.0 reboot"],
    ),
    "4 boots with applications' faults count for nothing": (
        healthy().log(xid(13, "pid=1, name=a", ago=120), xid(79, "GPU has fallen off the bus.")).knowing(
            history={"gpu-01": two_boots(13)}
        ),
        ["FAIL gpu-xid 0000:18:00.0 reboot"],
    ),
    "4 off the bus in three boots, whatever came before": (
        healthy().log(xid(13, "pid=1, name=a", ago=120), xid(79, "GPU has fallen off the bus.")).knowing(
            history={"gpu-01": two_boots(79)}
        ),
        ["FAIL gpu-xid 0000:18:00.0 reboot", "FAIL gpu-xid-recurrence 0000:18:00.0 rma"],
    ),
    "5 one fault in many processes": (healthy().log(*FORTY_PROCESSES), ["WARN gpu-xid 0000:18:00.0 none"]),
    "5 two programs": (
        healthy().log(xid(31, "pid=7000, name=a, x", ago=90), xid(31, "pid=7001, name=b, x")),
        ["WARN gpu-xid 0000:18:00.0 none"],
    ),
    "5 one process": (
        healthy().log(xid(13, "pid='<unknown>', name=<unknown>, x"), xid(43, "pid=7000, name=python, Ch 8")), [],
    ),
    "6 reset done": (
        healthy().log(xid(48, "pid=9, name=a", ago=3000), xid(154, RESET, ago=2999), xid(154, NONE, ago=2000)), [],
    ),
    "6 reset done a moment after": (healthy().log(xid(48, "x", ago=99), xid(154, RESET, ago=98), xid(154, NONE)), []),
    "6 reset done, and again": (
        healthy().log(xid(48, "x", ago=99), xid(154, NONE, ago=98), xid(48, "x", ago=97)),
        ["FAIL gpu-xid 0000:18:00.0 reset_gpu"],
    ),
    "6 not over for a card that is not there": (
        healthy().log(xid(79, "off", ago=3000, gpu=5), xid(154, NONE, ago=2000, gpu=5)),
        ["FAIL gpu-xid 0000:1d:00.0 reboot"],
    ),
    "6 not over while the card asks": (
        gpu_change("gpu_recovery_action", "GPU Reset")(healthy()).log(xid(48, "x", ago=3000), xid(154, NONE, ago=2000)),
        ["FAIL gpu-recovery-action 0000:18:00.0 reset_gpu", "FAIL gpu-xid 0000:18:00.0 reset_gpu"],
    ),
    "8 fatal in the log, sysfs is not there": (
        healthy().log(line(f"pcieport {GPU}: AER: Uncorrected (Fatal) error received: {GPU}")).fact("files_pci", None),
        ["FAIL pcie-aer - drain", "WARN host-evidence - none"],
    ),
    "9 nvidia-smi of another architecture": (
        healthy(1).command("nvidia_smi_xml", CommandResult(refused="Exec format error")),
        ["FAIL driver-responds - config"],
    ),
    "9 a machine that can start no process": (
        healthy(1).command(
            "nvidia_smi_xml", CommandResult(refused="Resource temporarily unavailable", exhausted=True)
        ),
        ["FAIL host-evidence - reboot"],
    ),
    "28 a noisy link still carries data": (
        healthy().paths({"/sys/class/infiniband/mlx5_1/ports/1/counters/symbol_error": "500"}).knowing(
            history={"gpu-01": [Snapshot(NOW - 3600, BOOT, {"port mlx5_1/1": {"symbol_error": 0, "link_downed": 1}})]}
        ),
        ["WARN rdma-errors mlx5_1/1 none"],
    ),
    "11 memory of a card at work": (
        healthy(1).gpus(texts({"fb_memory_usage/used": "9184 MiB", "utilization/gpu_util": "65 %",
                               "performance_state": "P2"})),
        [],
    ),
    "11 memory of an idle card": (
        healthy(1).gpus(texts({"fb_memory_usage/used": "9184 MiB"})), ["FAIL gpu-memory-leak 0000:18:00.0 reboot"],
    ),
    "12 a loaded model that waits": (
        healthy(1).gpus(texts({"performance_state": "P8", "utilization/gpu_util": "0 %",
                               "clocks_event_reasons/clocks_event_reason_gpu_idle": "Not Active"})),
        [],
    ),
    "13 cleanup after a fault of NVLink": (
        healthy().log(xid(45, "pid=5, name=a, Ch 00000009, caused by previous Xid 149")),
        ["FAIL gpu-xid 0000:18:00.0 reset_gpu"],
    ),
    "13 cleanup after an application's fault": (
        healthy().log(xid(45, "pid=5, name=a, Ch 00000009, caused by previous Xid 13")), [],
    ),
    "14 context switch timeout": (healthy().log(xid(109, "x")), ["FAIL gpu-xid 0000:18:00.0 reset_gpu"]),
    "14 no resources left": (healthy().log(xid(157, "x")), ["WARN gpu-xid 0000:18:00.0 none"]),
    "14 power cable": (healthy().log(xid(54, "x")), ["FAIL gpu-xid 0000:18:00.0 drain"]),
    "14 remap failure": (healthy().log(xid(64, "x")), ["FAIL gpu-xid 0000:18:00.0 reset_gpu"]),
    "14 display engine": (healthy().log(xid(81, "x")), ["WARN gpu-xid 0000:18:00.0 drain"]),
    "15 two of eight ports are off": (
        healthy(8).paths({f"/sys/class/infiniband/mlx5_{port}/ports/1/{name}": text for port in (3, 6)
                          for name, text in (("state", "1: DOWN"), ("phys_state", "3: Disabled"))}),
        ["FAIL rdma-ports - drain"],
    ),
    "15 one of three ports is off, whatever the GPU": (
        healthy().paths({
            f"/sys/class/infiniband/mlx5_9/ports/1/{name}": text
            for name, text in (("state", "1: DOWN"), ("phys_state", "3: Disabled"), ("link_layer", "InfiniBand"))
        }),
        ["WARN rdma-ports mlx5_9/1 config"],
    ),
    "15 a machine with fewer ports than most": (
        healthy(8).paths(
            {path: None for path in healthy(8).evidence.files if "mlx5_7/" in path or "mlx5_6/" in path}
        ),
        ["WARN rdma-ports - config"],
    ),
    "15 fewer ports than were accepted": (
        healthy().knowing(baselines={"gpu-01": Baseline(NOW, {}, 3)}), ["FAIL rdma-ports - drain"],
    ),
    "15 as many ports as were accepted": (healthy().knowing(baselines={"gpu-01": Baseline(NOW, {}, 2)}), []),
    "15 ports that are gone": (
        healthy().paths({path: None for path in healthy().evidence.files if "infiniband" in path}).knowing(
            baselines={"gpu-01": Baseline(NOW, {}, 2)}
        ),
        ["FAIL rdma-ports - drain"],
    ),
    "74 a link three times": (
        healthy().log(*link_errors(RESEAT, (3000, 6), (2000, 6), (1000, 6))),
        ["FAIL gpu-xid 0000:18:00.0 reset_gpu", f"{SAME_LINK}drain"],
    ),
    "74 a link three times, by parity": (
        healthy().log(*link_errors(PARITY, (3000, 6), (2000, 6), (1000, 6))),
        ["FAIL gpu-xid 0000:18:00.0 reset_gpu", f"{SAME_LINK}rma"],
    ),
    "74 a link twice": (
        healthy().log(*link_errors(RESEAT, (3000, 6), (2990, 6), (1000, 6))), ["FAIL gpu-xid 0000:18:00.0 reset_gpu"],
    ),
    "74 three links": (
        healthy().log(*link_errors(RESEAT, (3000, 6), (2000, 7), (1000, 8))), ["FAIL gpu-xid 0000:18:00.0 reset_gpu"],
    ),
    "74 a link three times, after other errors": (
        healthy().log(*link_errors(AFTER_ANOTHER, (3000, 6), (2000, 6), (1000, 6))),
        ["FAIL gpu-xid 0000:18:00.0 reset_gpu"],
    ),
    "74 a link three times, days ago": (
        healthy().log(*link_errors(RESEAT, (300_000, 6), (200_000, 6), (100_000, 6))),
        ["WARN gpu-xid 0000:18:00.0 reset_gpu"],
    ),
    "74 a link in three boots": (
        healthy().log(*link_errors(RESEAT, (60, 6))).knowing(history={"gpu-01": link_boots("6")}),
        ["FAIL gpu-xid 0000:18:00.0 reset_gpu", "FAIL gpu-xid-recurrence 0000:18:00.0 rma", f"{SAME_LINK}drain"],
    ),
    "74 other links in other boots": (
        healthy().log(*link_errors(RESEAT, (60, 6))).knowing(history={"gpu-01": link_boots("5")}),
        ["FAIL gpu-xid 0000:18:00.0 reset_gpu", "FAIL gpu-xid-recurrence 0000:18:00.0 rma"],
    ),
    "16 link training after a boot": (
        healthy().log(line("nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 22013, Non-fatal, Link 32 Minion")), [],
    ),
    "16 fatal by its number": (
        healthy().log(line("nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 12020, Link 32 egress sequence ID error")),
        ["FAIL nvswitch-sxid 0000:06:00.0 reboot"],
    ),
    "16 fatal by its word": (
        healthy().log(line("nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 99999, Fatal, Link 32 something new")),
        ["FAIL nvswitch-sxid 0000:06:00.0 reboot"],
    ),
    "19 an excluded GPU": (
        healthy().output("nvidia_smi_excluded", "GPU 00000000:1B:00.0 (UUID: GPU-0)\n"),
        ["WARN gpu-excluded 0000:1b:00.0 config"],
    ),
    "19 no excluded GPU": (healthy().output("nvidia_smi_excluded", "No excluded devices found.\n"), []),
    "19 -L shows fewer": (healthy().output("nvidia_smi_list", "GPU 0: x (UUID: GPU-0)\n"), ["FAIL gpu-count - reboot"]),
    "19 flaps in the log": (
        healthy().log(*(line("mlx5_core 0000:01:00.0 ib0: Link down", ago) for ago in (900, 700, 500, 300, 60))),
        ["WARN network-carrier ib0 none"],
    ),
    "19 flaps of a card without a name": (
        healthy().log(*(line("mlx5_core 0000:01:00.0: Port: 1 Link DOWN", ago) for ago in (900, 700, 500))),
        ["WARN network-carrier 0000:01:00.0 none"],
    ),
    "19 a start and a stop are no flap": (
        healthy().log(*(line("ib0: lost carrier", ago) for ago in (900, 60))), [],
    ),
    "19 a narrow slot of a network card": (
        healthy().log(line(
            "mlx5_core 0000:01:00.0: 126.016 Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe x8 link at "
            "0000:00:02.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)")),
        ["WARN pcie-bandwidth 0000:01:00.0 none"],
    ),
    "19 an idle GPU at boot": (
        healthy().log(line(
            f"pci {GPU}: 32.000 Gb/s available PCIe bandwidth, limited by 2.5 GT/s PCIe x16 link at "
            "0000:00:02.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)")),
        [],
    ),
    "19 a virtual port": (
        healthy().log(line(
            f"pci {GPU}: 0.000 Gb/s available PCIe bandwidth, limited by Unknown x0 link at <unknown> "
            "(capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)")),
        [],
    ),
    "19 a network card that the driver calls sick": (
        healthy().log(line("mlx5_core 0000:01:00.0: device's health compromised - reached miss count")),
        ["FAIL rdma-device-health 0000:01:00.0 reboot"],
    ),
    "19 the kernel broke": (
        healthy().log(line("BUG: unable to handle page fault for address: ffff9c"), line("Oops: 0002 [#1] SMP NOPTI")),
        ["WARN kernel-oops - reboot"],
    ),
    "19 a program's own fault": (
        healthy().log(line("traps: python[77] general protection fault ip:7f in libnccl.so.2[7f+1000]")), [],
    ),
    "19 the kernel's own fault": (
        healthy().log(line("general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP")),
        ["WARN kernel-oops - reboot"],
    ),
    "5 two jobs in two weeks": (
        healthy().log(xid(31, "pid=7000, name=a, x", ago=900_000), xid(31, "pid=8000, name=b, x", ago=60)), [],
    ),
    "clocks locked at work": (
        healthy(1).gpus(texts({"clocks_event_reasons/clocks_event_reason_applications_clocks_setting": "Active",
                               "clocks_event_reasons/clocks_event_reason_gpu_idle": "Not Active",
                               "utilization/gpu_util": "99 %", "clocks/sm_clock": "300 MHz"})),
        ["WARN gpu-clock-limit 0000:18:00.0 config"],
    ),
    "application clock below the default": (
        healthy(1).gpus(texts({"applications_clocks/graphics_clock": "1200 MHz",
                               "default_applications_clocks/graphics_clock": "1980 MHz"})),
        ["WARN gpu-clock-limit 0000:18:00.0 config"],
    ),
    "IOMMU translates": (
        healthy().paths({f"/sys/bus/pci/devices/{gpu}/iommu_group/type": "DMA-FQ" for gpu in (GPU, OTHER)}),
        ["WARN pcie-direct - config"],
    ),
    "ACS redirects": (
        healthy().paths({f"/sys/bus/pci/devices/{GPU}/upstream/acs": "0000:15:00.0 0x1d"}),
        ["WARN pcie-direct - config"],
    ),
    "27 a vGPU without its licence": (
        healthy(1).gpus(texts({"product_name": "NVIDIA A100-40C", "product_architecture": "Ampere",
                               "fb_memory_usage/total": "40960 MiB",
                               "vgpu_software_licensed_product/license_status": "Unlicensed (Unrestricted)"}))
        .expecting(model="A100").output("nvidia_smi_nvlink", NO_LINKS),
        ["WARN gpu-vgpu-license 0000:18:00.0 config"],
    ),
    "33 Rubin: no bank left": (
        healthy(1).gpus(texts({"product_name": "NVIDIA Graphics Device", "product_architecture": "Rubin",
                               "remapped_banks/bank_remapper_histogram/bank_remapper_histogram_none": "1 group(s)"}))
        .expecting(model="").output("nvidia_smi_nvlink", NO_LINKS),
        ["FAIL gpu-remap-banks 0000:18:00.0 rma"],
    ),
    "33 Rubin: a bank waits": (
        healthy(1).gpus(texts({"product_name": "NVIDIA Graphics Device", "product_architecture": "Rubin",
                               "remapped_banks/bank_remapper_pending": "Yes"}))
        .expecting(model="").output("nvidia_smi_nvlink", NO_LINKS),
        ["WARN gpu-repair-pending 0000:18:00.0 reset_gpu"],
    ),
    "21 cards older than MIG": (
        healthy(1).gpus(texts({"mig_mode/current_mig": None, "mig_mode/pending_mig": None,
                               "product_name": "NVIDIA GeForce RTX 2080 Ti", "product_architecture": "Turing"}))
        .expecting(model="RTX 2080 Ti").output("nvidia_smi_nvlink", NO_LINKS),
        [],
    ),
    "24 a process without a name": (
        healthy(1).gpus(texts({"processes": "77,C,,5000 MiB"}))
        .fact("gpu_processes", {"77": {"cgroup": "/kubepods/a"}}),
        [],
    ),
    "25 lanes of an idle link of PCIe 6": (
        healthy(1).gpus(texts({"pci/pci_gpu_link_info/pcie_gen/max_link_gen": "6", "performance_state": "P8",
                               "pci/pci_gpu_link_info/link_widths/current_link_width": "2x"})),
        [],
    ),
    "25 lanes of a working link of PCIe 6": (
        healthy(1).gpus(texts({"pci/pci_gpu_link_info/pcie_gen/max_link_gen": "6",
                               "pci/pci_gpu_link_info/pcie_gen/current_link_gen": "6",
                               "pci/pci_gpu_link_info/link_widths/current_link_width": "2x"})),
        ["FAIL gpu-pcie-width 0000:18:00.0 drain"],
    ),
    "26 a dead card is no other model": (
        healthy().gpus(texts({"product_name": "ERR!"}), h100(1)), ["FAIL gpu-readable 0000:18:00.0 reboot"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_defect(name: str) -> None:
    box, expected = CASES[name]
    assert loud(box) == sorted(expected)


def test_the_cause_is_named_and_what_came_before_it() -> None:
    box, _ = CASES["4 an application's fault, then off the bus"]
    assert box.finding("gpu-xid").message == "Xid 79: GPU has fallen off the bus, after Xid 13"
    box, _ = CASES["13 cleanup after a fault of NVLink"]
    assert "149" in box.finding("gpu-xid").message
    box, _ = CASES["6 reset done"]
    (over,) = [item for item in box.findings("gpu-xid") if item.device == GPU]
    assert "resolved since" in over.message


def test_the_place_of_a_fault_that_many_processes_meet() -> None:
    found = CASES["5 one fault in many processes"][0].finding("gpu-xid")
    assert "in 7 different processes, each time on GPC 1, TPC 2, SM 0" in found.message


def test_the_driver_s_own_words_for_a_gpu_that_does_not_start() -> None:
    found = CASES["3 nouveau holds it"][0].finding("gpu-driver-start")
    assert "another driver holds it" in found.message or "nouveau" in found.message
    assert "nouveau" in found.remedy


# Defect 7: whatever one machine says, the others are judged


ODD: dict[str, Callable[[Box], Box]] = {
    "smart": lambda box: box.output("smart:/dev/sda", '{"smart_status": null, "smart_support": 7, "device": []}'),
    "attached": lambda box: box.output("nvidia_smi_xml", smi_xml([h100()]).replace(">1<", ">" + "9" * 5000 + "<")),
    "generation": gpu_change("pci/pci_gpu_link_info/pcie_gen/max_link_gen", "9" * 400),
    "width": gpu_change("pci/pci_gpu_link_info/link_widths/current_link_width", "9" * 5000 + "x"),
    "state": gpu_change("performance_state", "P" + "8" * 5000),
    "meminfo": lambda box: box.paths({"/proc/meminfo": "MemTotal: " + "9" * 5000 + " kB"}),
    "edac": lambda box: box.paths({"/sys/devices/system/edac/mc/mc0/ce_count": "9" * 5000}),
    "aer": lambda box: box.paths({f"/sys/bus/pci/devices/{GPU}/aer_dev_fatal": "TOTAL_ERR_FATAL " + "9" * 5000}),
    "units": lambda box: box.output("units", "Id=nvidia-fabricmanager.service\nNRestarts=" + "9" * 5000),
    "ps": lambda box: box.output("ps", "1 D 0 " + "9" * 5000 + " - nvidia-smi\n"),
    "nvlink": lambda box: box.output("nvidia_smi_nvlink_errors", "GPU 0: x\n Link 0: Replay Errors: " + "9" * 5000),
    "ports": lambda box: box.paths({"/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed": "9" * 5000}),
    "nodes": lambda box: box.output(
        "kubernetes_nodes", 'gpu-01\t\t{"nvidia.com/gpu": "' + "9" * 5000 + '"}\t{}\tTrue\n'
    ),
    "log": lambda box: box.log("[" + "9" * 400 + ".0] NVRM: Xid (PCI:0000:18:00): 79, x"),
    "log of years": lambda box: box.log("9999-99-99T99:99:99+0000 h kernel: NVRM: Xid (PCI:0000:18:00): 79, x"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_word_ends_no_machine_s_judgement(name: str) -> None:
    report = ODD[name](healthy(1)).report()
    assert len({item.id for item in report.findings}) > 90


def test_a_check_that_breaks_keeps_what_it_found_and_says_so() -> None:
    box = healthy().log(line(f"pcieport {GPU}: AER: Uncorrected (Fatal) error received: {GPU}"))
    box = box.paths({f"/sys/bus/pci/devices/{GPU}/aer_dev_fatal": "TOTAL_ERR_FATAL " + "9" * 5000})
    assert [item.verdict for item in box.findings("pcie-aer")] == [Verdict.FAIL, Verdict.UNKNOWN]


# Defects 9 and 10: the collector itself


def test_a_program_that_the_kernel_does_not_start_ends_no_collection(tmp_path: Path) -> None:
    strange = tmp_path / "nvidia-smi"
    strange.write_bytes(b"\x7fELF of another machine")
    strange.chmod(0o755)
    work: list[object] = [[str(strange)], ["true"]]
    jobs = [collector.Errand(name, item, 5, 1000) for name, item in zip(("smi", "true"), work, strict=True)]
    done = collector.run_jobs(jobs, time.monotonic() + 10, lambda _: [])
    assert done["smi"].result["refused"] == "Exec format error"
    assert done["true"].result["rc"] == 0


def test_a_flood_on_stderr_leaves_the_evidence_of_others() -> None:
    flood = {"stdout": "", "stderr": "x" * (collector.TOTAL_CUT * 2)}
    other = {"stdout": "1 S", "stderr": ""}
    document: dict[str, object] = {"commands": {"smi": flood, "ps": other}}
    collector.shrink(document)
    assert other["stdout"] == "1 S"
    assert len(json.dumps(document)) <= collector.TOTAL_CUT


# Defect 18: the page


def test_a_thousand_machines_on_one_page_the_gravest_first() -> None:
    kinds = {"well": healthy(), "warned": CASES["14 no resources left"][0], "reset": CASES["14 remap failure"][0],
             "replace": CASES["74 a link three times, by parity"][0]}  # fmt: skip
    reports = {name: box.report() for name, box in kinds.items()}
    many = [replace(report, name=f"{name}-{number}") for number in range(250) for name, report in reports.items()]
    page = html(HealthReport(tuple(many)), title="x")
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    names = [machine["n"].partition("-")[0] for machine in data["machines"]]
    assert names == ["replace"] * 250 + ["reset"] * 250 + ["warned"] * 250 + ["well"] * 250
    assert len(page) < 3_000_000


# Defect 20: NVML's other words are no values


@pytest.mark.parametrize(
    "word",
    ["System is not in ready state", "Timeout", "Insufficient Resources", "Not Ready", "Uninitialized", "[Timeout]"],
)
def test_words_of_nvml_are_no_values(word: str) -> None:
    box = gpu_change("temperature/gpu_temp", word)(healthy())
    assert "FAIL gpu-readable 0000:18:00.0 reboot" in loud(box)
    fabric = gpu_change("fabric/status", word)(healthy())
    assert loud(fabric) == ["FAIL gpu-fabric 0000:18:00.0 drain"]


# Defect 23: numbers that no GPU can mean


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("ecc_errors/volatile/dram_uncorrectable", "-1"),
        ("ecc_errors/volatile/dram_uncorrectable", "0x7f"),
        ("ecc_errors/volatile/dram_uncorrectable", "1e400"),
        ("temperature/gpu_temp", "-999999 C"),
        ("remapped_rows/row_remapper_histogram/row_remapper_histogram_none", "-3 bank(s)"),
        ("fb_memory_usage/used", "-5 MiB"),
        ("pci/replay_counter", "-4"),
    ],
)
def test_a_number_that_cannot_be_is_unknown(path: str, text: str) -> None:
    box = gpu_change(path, text)(healthy())
    found = [item for item in box.report().findings if item.device == GPU and item.verdict is Verdict.UNKNOWN]
    assert found
    assert all(text in (item.value, item.message) or text in item.message for item in found)


# Defect 17: a GPU that neither the site nor lspci names

SILENT = [
    CommandResult(rc=9, stdout="NVIDIA-SMI has failed because it couldn't communicate", duration_s=1),
    CommandResult(rc=255, stderr="broken", duration_s=1),
    CommandResult(timed_out=True, duration_s=45, state="D"),
]


@pytest.mark.parametrize("result", SILENT)
def test_a_gpu_that_only_sysfs_shows_is_no_missing_gpu(result: CommandResult) -> None:
    box = healthy(1).expecting(device="", count=None, model="").command("lspci", CommandResult(missing=True))
    box = box.command("nvidia_smi_xml", result)
    bare = {path: None for path in box.evidence.files if path.startswith(("/proc/driver", "/dev/nvidia"))}
    failed = {line.split()[1] for line in loud(box.paths(bare), Verdict.FAIL)}
    assert failed & {"driver-status", "driver-responds"}


# Defect 32: a worker with GPUs of which none can be read


@pytest.mark.parametrize("text", ["", "\x00\x01garbage", "<nvidia_smi_log><gpu"])
def test_an_answer_that_is_none_fails_where_there_must_be_gpus(text: str) -> None:
    box = healthy(1).output("nvidia_smi_xml", text)
    assert "FAIL driver-status - reboot" in loud(box)
    cut = box.command("nvidia_smi_xml", replace(ran(text), truncated=True))
    assert "FAIL driver-status - reboot" in loud(cut)


# Defect 22: the older name of a pending retirement; 31: the branch of another card's end


def old_card(name: str, driver: str, changes: Mapping[str, str | None]) -> Box:
    return healthy(1).output(
        "nvidia_smi_xml", smi_xml([texts({"product_name": name, **changes}, volta())], driver=driver)
    )


@pytest.mark.parametrize(("word", "verdict"), [("No", Verdict.PASS), ("Yes", Verdict.FAIL), (None, Verdict.UNKNOWN)])
def test_a_pending_retirement_under_its_older_name(word: str | None, verdict: Verdict) -> None:
    pending = "retired_pages/pending_retirement"
    box = old_card("Tesla K80", "418.56", {pending: None, "retired_pages/pending_blacklist": word})
    assert box.verdict("gpu-retired-pages") is verdict


@pytest.mark.parametrize(
    ("name", "driver", "verdict"),
    [
        ("Tesla K80", "470.256.02", Verdict.PASS),
        ("NVIDIA GeForce GT 1030", "470.74", Verdict.WARN),
        ("Tesla P100-PCIE-16GB", "470.256.02", Verdict.WARN),
        ("Tesla K80", "418.56", Verdict.WARN),
    ],
)
def test_a_branch_is_maintained_for_the_cards_whose_last_it_is(name: str, driver: str, verdict: Verdict) -> None:
    assert old_card(name, driver, {}).verdict("driver-branch") is verdict


@pytest.mark.parametrize("name", ["NETIR_LINK_EVT", "NETIR_LINK_DOWN"])
@pytest.mark.parametrize(
    ("number", "unit", "word", "info", "status", "verdict"),
    [
        (149, "", "Fatal", 0x004505C6, 0, Verdict.FAIL),
        (149, "", "Fatal", 0x26 << 20, 0, Verdict.WARN),
        (145, "RLW_RXPIPE", "Nonfatal", 0, 2, Verdict.FAIL),
        (145, "RLW_RXPIPE", "Nonfatal", 0, 8, Verdict.WARN),
        (145, "RLW_REMAP", "Nonfatal", 0, 0x100, Verdict.PASS),
        (144, "SAW_MVB", "Nonfatal", 0, 2, Verdict.WARN),
        (144, "SAW_MVB", "Fatal", 0, 0x4000, Verdict.FAIL),
        (150, "MSE_WATCHDOG", "Fatal", 0, 0, Verdict.FAIL),
        (149, "NETIR_BER_EVENT", "Fatal", 0, 1, Verdict.WARN),
    ],
)
def test_nvlink_5_by_unit_and_status(
    name: str, number: int, unit: str, word: str, info: int, status: int, verdict: Verdict
) -> None:
    text = f"{unit or name} {word} XC0 i0 Link 08 ({info:#010x} {status:#010x} 0x00000000)"
    found = [item for item in healthy().log(xid(number, text)).findings("gpu-xid") if item.device == GPU]
    assert [item.verdict for item in found] == [verdict]


def test_the_time_of_an_xid_comes_first() -> None:
    value = healthy().log(xid(79, "off", ago=60)).finding("gpu-xid").value
    assert value.startswith("2026-09-21 14:12:20 UTC: 79 ")


def test_machines_are_counted_and_not_findings() -> None:
    sick = CASES["1 reset beside what cannot be read"][0].report()
    last = text_of(HealthReport((sick, healthy().report()), {"gone": "no route"})).splitlines()[-1]
    assert last.startswith("3 machines: 2 FAIL, 1 PASS (findings: 4 FAIL")


# The same defects in the other form of the answer, and in any word that a driver may print


QUERY = """
==============NVSMI LOG==============

Driver Version                            : 535.247.01
Attached GPUs                             : 1
GPU 00000000:18:00.0
    Product Name                          : NVIDIA A100-SXM4-40GB
    Persistence Mode                      : Enabled
    GPU Reset Status
        Reset Required                    : {required}
        Drain and Reset Recommended       : {drain}
    Performance State                     : {state}
    FB Memory Usage
        Total                             : 40960 MiB
        Used                              : {used}
    Utilization
        Gpu                               : {busy}
    Clocks Throttle Reasons
        Idle                              : Not Active
        Applications Clocks Setting       : {setting}
        SW Power Cap                      : Not Active
    Clocks
        SM                                : {clock}
    Applications Clocks
        Graphics                          : {application}
    Default Applications Clocks
        Graphics                          : 1095 MHz
    Max Clocks
        SM                                : 1410 MHz
    Processes                             : None
"""
QUIET = {"required": "No", "drain": "No", "state": "P0", "used": "4 MiB", "busy": "0 %", "setting": "Not Active",
         "clock": "1410 MHz", "application": "1095 MHz"}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "check", "verdict"),
    [
        ({}, "gpu-recovery-action", Verdict.PASS),
        ({"required": "Yes"}, "gpu-recovery-action", Verdict.FAIL),
        ({"drain": "Yes"}, "gpu-recovery-action", Verdict.FAIL),
        ({"required": "N/A", "drain": "N/A"}, "gpu-recovery-action", Verdict.SKIP),
        ({"required": "Unknown Error"}, "gpu-recovery-action", Verdict.UNKNOWN),
        ({"used": "9184 MiB"}, "gpu-memory-leak", Verdict.FAIL),
        ({"used": "9184 MiB", "busy": "65 %"}, "gpu-memory-leak", Verdict.UNKNOWN),
        ({"state": "P8", "busy": "0 %"}, "gpu-performance-state", Verdict.PASS),
        ({"state": "P8", "busy": "90 %"}, "gpu-performance-state", Verdict.WARN),
        ({"setting": "Active", "clock": "300 MHz"}, "gpu-clock-limit", Verdict.WARN),
        ({"setting": "Active", "clock": "1095 MHz"}, "gpu-clock-limit", Verdict.PASS),
        ({"application": "600 MHz"}, "gpu-clock-limit", Verdict.WARN),
        ({"setting": "ERR!"}, "gpu-clock-limit", Verdict.UNKNOWN),
    ],
)
def test_text_of_nvidia_smi(changes: Mapping[str, str], check: str, verdict: Verdict) -> None:
    box = healthy(1).command("nvidia_smi_xml", CommandResult(rc=255, stderr="no XML", duration_s=1))
    box = box.output("nvidia_smi_text", QUERY.format(**{**QUIET, **changes}))
    assert box.verdict(check) is verdict


WORDS = st.sampled_from(
    [
        "",
        "N/A",
        "0x7f",
        "1e400",
        "-1",
        "9" * 400,
        "ERR!",
        "Yes",
        "Active",
        "P8",
        "\x00",
        "Ünknown",
        "GPU is lost",
        "None",
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(h100(0))), WORDS, min_size=1, max_size=6))
def test_no_words_of_a_gpu_end_a_judgement(changes: dict[str, str]) -> None:
    report = healthy(1).gpus(texts(changes)).report()
    assert len({item.id for item in report.findings}) > 90


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(healthy(1).evidence.commands)), st.text(max_size=300), st.integers(-1, 255))
def test_no_answer_of_a_program_ends_a_judgement(command: str, text: str, status: int) -> None:
    report = healthy(1).command(command, CommandResult(rc=status, stdout=text, duration_s=1)).report()
    assert len({item.id for item in report.findings}) > 90


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(sorted(healthy(1).evidence.files)), st.one_of(st.text(max_size=200), st.just("9" * 5000)))
def test_no_content_of_a_file_ends_a_judgement(path: str, text: str) -> None:
    report = healthy(1).paths({path: text}).report()
    assert len({item.id for item in report.findings}) > 90


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([8, 13, 31, 43, 45, 48, 63, 79, 94, 119, 149, 154, 999]),
            st.integers(0, 90_000),
            st.sampled_from(["pid=1, name=a", NONE, RESET, NETIR, "caused by previous Xid 79"]),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_an_incident_is_never_milder_than_its_gravest_member(entries: list[tuple[int, int, str]]) -> None:
    log = [xid(number, text, ago=ago) for number, ago, text in sorted(entries, key=lambda entry: -entry[1])]
    incidents = machine_view(healthy().log(*log).evidence, healthy().knowledge).incidents
    assert sum(len(item.members) for item in incidents) <= len(entries)
    for incident in incidents:
        worst = max(meaning_of(member, CATALOGUE).gravity for member in incident.members)
        assert incident.gravest.gravity == worst
        assert incident.meaning.gravity[0] == worst[0]
        assert incident.cause in incident.members


def test_the_next_run_knows_which_link_failed() -> None:
    box = CASES["74 a link twice"][0]
    view = machine_view(box.evidence, box.knowledge)
    remembered = snapshot_of(view, ())
    assert {(item.xid, item.link) for item in remembered.incidents} == {(74, "6")}
    again = parse_snapshot(remembered.as_json())
    assert again == remembered
    before_links = {**remembered.as_json(), "incidents": [{"xid": 74, "uuid": "x", "boot_id": "b", "time": 1.0}]}
    assert parse_snapshot(before_links).incidents[0].link == ""
