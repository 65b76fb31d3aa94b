"""The smallest case of every defect that a review found: a machine that is well but for it, and the exact verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pai_install.checks.verdict import Verdict
from pai_install.health.evidence.document import CommandResult
from pai_install.health.memory.snapshot import PastIncident, Snapshot
from tests.unit.health.machines import NOW, Box, Texts, bus_id, change, gpu_change, h100, healthy, ran, smi_xml, uuid

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


RESET = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
NONE = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
NETIR = "NETIR_LINK_EVT Fatal XC1 i0 Link 00 (0x016415c6 0x00000000 0x00000000 0x00000000)"
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
        .expecting(model="GH200").output("nvidia_smi_nvlink", "GPU 0: NVIDIA GH200 480GB (UUID: " + uuid(0) + ")\n"),
        [],
    ),
    "2 GH200 144G": (
        healthy(1).gpus(texts({"product_name": "NVIDIA GH200 144G HBM3e", "fb_memory_usage/total": "147456 MiB"}))
        .expecting(model="GH200").output("nvidia_smi_nvlink", "GPU 0: NVIDIA GH200 144G HBM3e (UUID: " + uuid(0) + ")\n"),
        [],
    ),
    "3 RmInitAdapter of a GPU that is gone": (
        healthy(1).expecting(count=1).log(line("NVRM: GPU 0000:19:00.0: RmInitAdapter failed! (0x24:0x65:1185)"),
                                          line("NVRM: GPU 0000:19:00.0: rm_init_adapter failed, device minor number 1")),
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
            history={"gpu-01": [Snapshot(NOW - day, str(day), incidents=(PastIncident(13, uuid(0), str(day), NOW - day),))
                                for day in (200_000, 100_000)]}
        ),
        ["FAIL gpu-xid 0000:18:00.0 reboot"],
    ),
    "4 off the bus in three boots, whatever came before": (
        healthy().log(xid(13, "pid=1, name=a", ago=120), xid(79, "GPU has fallen off the bus.")).knowing(
            history={"gpu-01": [Snapshot(NOW - day, str(day), incidents=(PastIncident(79, uuid(0), str(day), NOW - day),))
                                for day in (200_000, 100_000)]}
        ),
        ["FAIL gpu-xid 0000:18:00.0 reboot", "FAIL gpu-xid-recurrence 0000:18:00.0 rma"],
    ),
    "5 one fault in many processes": (healthy().log(*FORTY_PROCESSES), ["WARN gpu-xid 0000:18:00.0 none"]),
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
    "16 link training after a boot": (
        healthy().log(line("nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 22013, Non-fatal, Link 32 Minion Link DLREQ")), [],
    ),
    "16 fatal by its number": (
        healthy().log(line("nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 12020, Link 32 egress sequence ID error")),
        ["FAIL nvswitch-sxid 0000:06:00.0 reboot"],
    ),
    "16 fatal by its word": (
        healthy().log(line("nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 99999, Fatal, Link 32 something new")),
        ["FAIL nvswitch-sxid 0000:06:00.0 reboot"],
    ),
    "21 cards older than MIG": (
        healthy(1).gpus(texts({"mig_mode/current_mig": None, "mig_mode/pending_mig": None,
                               "product_name": "NVIDIA GeForce RTX 2080 Ti", "product_architecture": "Turing"}))
        .expecting(model="RTX 2080 Ti").output("nvidia_smi_nvlink", "GPU 0: x (UUID: " + uuid(0) + ")\n"),
        [],
    ),
    "24 a process without a name": (
        healthy(1).gpus(texts({"processes": "77,C,,5000 MiB"})).fact("gpu_processes", {"77": {"cgroup": "/kubepods/a"}}),
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
    assert "ended since" in over.message


def test_the_place_of_a_fault_that_many_processes_meet() -> None:
    found = CASES["5 one fault in many processes"][0].finding("gpu-xid")
    assert "in 7 different processes, each time on GPC 1, TPC 2, SM 0" in found.message


def test_the_driver_s_own_words_for_a_gpu_that_does_not_start() -> None:
    found = CASES["3 nouveau holds it"][0].finding("gpu-driver-start")
    assert "another driver holds it" in found.message or "nouveau" in found.message
    assert "nouveau" in found.remedy


# Defect 7: whatever one machine says, the others are judged


ODD = {
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
