"""Builds machines for tests: nvidia-smi-like XML of our own, and the evidence of a healthy machine around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from xml.etree import ElementTree as ET

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.health.evidence.document import CommandResult, HealthEvidence
from pai_install.health.judge.catalogues import load_catalogue, load_limits
from pai_install.health.judge.evaluate import Knowledge, MachineReport, evaluate
from pai_install.health.judge.expectation import Expectation

NOW = 1_790_000_000.0
BOOT = "5f0c9f1e-0000-4000-8000-000000000001"
DRIVER = "580.95.05"
Texts = dict[str, str]

_COMMON = {
    "product_name": "NVIDIA H100 80GB HBM3",
    "product_architecture": "Hopper",
    "persistence_mode": "Enabled",
    "mig_mode/current_mig": "Disabled",
    "mig_mode/pending_mig": "Disabled",
    "mig_devices": "None",
    "serial": "N/A",
    "uuid": "",
    "vbios_version": "96.00.00.00.01",
    "inforom_version/img_version": "G520.0000.00.01",
    "gpu_recovery_action": "None",
    "gsp_firmware_version": DRIVER,
    "pci/pci_device_id": "233010DE",
    "pci/pci_gpu_link_info/pcie_gen/max_link_gen": "5",
    "pci/pci_gpu_link_info/pcie_gen/current_link_gen": "5",
    "pci/pci_gpu_link_info/pcie_gen/max_host_link_gen": "N/A",
    "pci/pci_gpu_link_info/link_widths/max_link_width": "16x",
    "pci/pci_gpu_link_info/link_widths/current_link_width": "16x",
    "pci/replay_counter": "40",
    "performance_state": "P0",
    "fb_memory_usage/total": "81500 MiB",
    "fb_memory_usage/used": "0 MiB",
    "compute_mode": "Default",
    "ecc_mode/current_ecc": "Enabled",
    "ecc_mode/pending_ecc": "Enabled",
    "ecc_errors/channel_repair_pending": "No",
    "ecc_errors/tpc_repair_pending": "No",
    "ecc_errors/unrepairable_memory": "No",
    "retired_pages/multiple_single_bit_retirement/retired_count": "N/A",
    "retired_pages/double_bit_retirement/retired_count": "N/A",
    "retired_pages/pending_retirement": "N/A",
    "remapped_rows/remapped_row_corr": "0",
    "remapped_rows/remapped_row_unc": "0",
    "remapped_rows/remapped_row_pending": "No",
    "remapped_rows/remapped_row_failure": "No",
    "remapped_rows/row_remapper_histogram/row_remapper_histogram_max": "2560 bank(s)",
    "remapped_rows/row_remapper_histogram/row_remapper_histogram_low": "0 bank(s)",
    "remapped_rows/row_remapper_histogram/row_remapper_histogram_none": "0 bank(s)",
    "temperature/gpu_temp": "31 C",
    "temperature/gpu_temp_tlimit": "55 C",
    "temperature/memory_temp": "40 C",
    "temperature/gpu_temp_max_mem_threshold": "95 C",
    "gpu_power_readings/instant_power_draw": "70.00 W",
    "gpu_power_readings/current_power_limit": "700.00 W",
    "gpu_power_readings/default_power_limit": "700.00 W",
    "utilization/gpu_util": "0 %",
    "clocks/sm_clock": "345 MHz",
    "max_clocks/sm_clock": "1980 MHz",
    "fabric/state": "Completed",
    "fabric/status": "Success",
    "fabric/health/summary": "Healthy",
    "processes": "",
}
for _scope in ("volatile", "aggregate"):
    for _kind in (
        "sram_correctable",
        "sram_uncorrectable_parity",
        "sram_uncorrectable_secded",
        "dram_correctable",
        "dram_uncorrectable",
    ):
        _COMMON[f"ecc_errors/{_scope}/{_kind}"] = "0"
_COMMON["ecc_errors/aggregate/sram_threshold_exceeded"] = "No"
for _reason in (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "sw_thermal_slowdown",
):
    _COMMON[f"clocks_event_reasons/clocks_event_reason_{_reason}"] = "Not Active"
_COMMON["clocks_event_reasons/clocks_event_reason_gpu_idle"] = "Active"
for _reason in ("sw_power_cap", "sw_therm_slowdown", "hw_therm_slowdown", "hw_power_brake"):
    _COMMON[f"clocks_event_reasons_counters/clocks_event_reasons_counters_{_reason}"] = "0 us"


def bus_id(index: int) -> str:
    """The bus id of a test machine's GPU, normalised."""
    return f"0000:{0x18 + index:02x}:00.0"


def uuid(index: int) -> str:
    """The UUID of a test machine's GPU."""
    return f"GPU-00000000-0000-4000-8000-{index:012x}"


def h100(index: int = 0) -> Texts:
    """Every text of a healthy H100."""
    return {**_COMMON, "uuid": uuid(index)}


def volta(index: int = 0) -> Texts:
    """Every text of a healthy V100 under an old driver's schema."""
    texts = {
        path: text
        for path, text in h100(index).items()
        if not path.startswith(("ecc_errors", "remapped_rows", "clocks_event", "fabric", "gpu_power", "mig", "gsp"))
    }
    texts.update(
        {
            "product_name": "Tesla V100-SXM2-32GB",
            "fb_memory_usage/total": "32510 MiB",
            "ecc_errors/volatile/double_bit/total": "0",
            "ecc_errors/volatile/single_bit/total": "0",
            "ecc_errors/aggregate/double_bit/total": "0",
            "ecc_errors/aggregate/single_bit/total": "0",
            "retired_pages/multiple_single_bit_retirement/retired_count": "0",
            "retired_pages/double_bit_retirement/retired_count": "0",
            "retired_pages/pending_retirement": "No",
            "power_readings/power_draw": "40.00 W",
            "power_readings/enforced_power_limit": "300.00 W",
            "power_readings/default_power_limit": "300.00 W",
            "pci/pci_gpu_link_info/pcie_gen/max_link_gen": "3",
            "pci/pci_gpu_link_info/pcie_gen/current_link_gen": "3",
            "temperature/gpu_temp_slow_threshold": "87 C",
            "temperature/gpu_temp_max_threshold": "90 C",
        }
    )
    del texts["product_architecture"], texts["gpu_recovery_action"], texts["temperature/gpu_temp_tlimit"]
    texts.update(
        {
            path.replace("clocks_event", "clocks_throttle"): text
            for path, text in _COMMON.items()
            if path.startswith("clocks_event_reasons/")
        }
    )
    return texts


def smi_xml(gpus: list[Texts], *, driver: str = DRIVER, attached: int | None = None, around: str = "") -> str:
    """A document like that of `nvidia-smi -q -x`; `around` is a line that the tool prints after it."""
    root = ET.Element("nvidia_smi_log")
    ET.SubElement(root, "driver_version").text = driver
    ET.SubElement(root, "attached_gpus").text = str(len(gpus) if attached is None else attached)
    for index, texts in enumerate(gpus):
        element = ET.SubElement(root, "gpu", id="0000" + bus_id(index).upper())
        for path, text in texts.items():
            _put(element, path, text)
    head = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">\n'
    return head + ET.tostring(root, encoding="unicode") + "\n" + around


def _put(element: ET.Element, path: str, text: str) -> None:
    *folders, name = path.split("/")
    for folder in folders:
        found = element.find(folder)
        element = found if found is not None else ET.SubElement(element, folder)
    if name == "processes" and "," in text:
        processes = ET.SubElement(element, name)
        for row in text.split(";"):
            pid, kind, process, used = row.split(",")
            info = ET.SubElement(processes, "process_info")
            for tag, value in (("pid", pid), ("type", kind), ("process_name", process), ("used_memory", used)):
                ET.SubElement(info, tag).text = value
        return
    if name == "mig_devices" and text.isdecimal():
        devices = ET.SubElement(element, name)
        for _ in range(int(text)):
            ET.SubElement(ET.SubElement(devices, "mig_device"), "index").text = "0"
        return
    ET.SubElement(element, name).text = text


def _nvlink(count: int) -> str:
    lines = []
    for index in range(count):
        lines.append(f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: {uuid(index)})")
        lines += [f"\t Link {link}: 26.562 GB/s" for link in range(18)]
    return "\n".join(lines) + "\n"


def _lspci(count: int) -> str:
    lines = [
        f"{bus_id(index)} 3D controller [0302]: NVIDIA Corporation Device [10de:2330] (rev a1)"
        for index in range(count)
    ]
    lines += ["0000:05:00.0 Bridge [0680]: NVIDIA Corporation Device [10de:22a3] (rev a1)"]
    lines += ["0000:01:00.0 Ethernet controller [0200]: Intel Corporation Device [8086:1593]"]
    return "\n".join(lines) + "\n"


def _units(*names: str) -> str:
    return "\n\n".join(f"Id={name}.service\nLoadState=loaded\nActiveState=active\nNRestarts=0" for name in names) + "\n"


def _p2p(count: int) -> str:
    head = "\t" + "\t".join(f"GPU{index}" for index in range(count))
    rows = [
        f" GPU{row}\t" + "\t".join("X" if row == column else "OK" for column in range(count)) for row in range(count)
    ]
    return "\n".join([head, *rows]) + "\n"


def ran(stdout: str = "", **values: object) -> CommandResult:
    """A command that ended well."""
    return replace(CommandResult(rc=0, stdout=stdout, duration_s=0.5), **values)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Box:
    """A machine to be judged, with what is known of it; every change gives a new one."""

    evidence: HealthEvidence
    expected: Expectation
    knowledge: Knowledge

    def command(self, name: str, result: CommandResult | None) -> Box:
        """With another result of one command; None removes it."""
        commands = {key: value for key, value in self.evidence.commands.items() if key != name}
        if result is not None:
            commands[name] = result
        return replace(self, evidence=replace(self.evidence, commands=commands))

    def output(self, name: str, stdout: str) -> Box:
        """With another output of one command."""
        return self.command(name, ran(stdout))

    def files(self, **changes: str | None) -> Box:
        """With other files: keys are paths with / written as __; None removes one."""
        return self.paths({key.replace("__", "/"): text for key, text in changes.items()})

    def paths(self, changes: Mapping[str, str | None]) -> Box:
        """With other files; None removes one."""
        files = {**self.evidence.files, **changes}
        kept = {path: text for path, text in files.items() if text is not None}
        return replace(self, evidence=replace(self.evidence, files=kept))

    def fact(self, name: str, value: object) -> Box:
        """With another value of one reader; None makes the reader fail."""
        facts = {key: item for key, item in self.evidence.facts.items() if key != name}
        broken = self.evidence.broken - {name}
        if value is None:
            broken |= {name}
        else:
            facts[name] = value
        return replace(self, evidence=replace(self.evidence, facts=facts, broken=frozenset(broken)))

    def log(self, *lines: str) -> Box:
        """With these lines in the kernel log."""
        return self.output("kernel_log", "\n".join(lines))

    def expecting(self, **values: object) -> Box:
        """With another expectation of the site."""
        return replace(self, expected=replace(self.expected, **values))  # type: ignore[arg-type]

    def knowing(self, **values: object) -> Box:
        """With other baselines, history, limits ..."""
        return replace(self, knowledge=replace(self.knowledge, **values))  # type: ignore[arg-type]

    def gpus(self, *gpus: Texts, **options: object) -> Box:
        """With other GPUs in the answer of nvidia-smi."""
        return self.output("nvidia_smi_xml", smi_xml(list(gpus), **options))  # type: ignore[arg-type]

    def report(self) -> MachineReport:
        """The verdicts."""
        knowledge = replace(self.knowledge, expected={self.evidence.machine: self.expected})
        return evaluate([self.evidence], knowledge)[0]

    def findings(self, check: str) -> list[Finding]:
        """The findings of one check."""
        return [finding for finding in self.report().findings if finding.id == check]

    def finding(self, check: str) -> Finding:
        """The gravest finding of one check."""
        order = [Verdict.FAIL, Verdict.WARN, Verdict.UNKNOWN, Verdict.SKIP, Verdict.PASS]
        return min(self.findings(check), key=lambda finding: order.index(finding.verdict))

    def verdict(self, check: str) -> Verdict:
        """The gravest verdict of one check."""
        return self.finding(check).verdict


LIMITS = load_limits()
CATALOGUE = load_catalogue()


def _files(count: int) -> dict[str, str]:
    files = {
        "/proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX Open Kernel Module  {DRIVER}  Release Build",
        "/dev/nvidiactl": "device",
        "/dev/nvidia-uvm": "device",
        "/proc/meminfo": "MemTotal:       1056000000 kB\nMemFree:  900000000 kB",
        "/proc/swaps": "Filename\tType\tSize\tUsed\tPriority",
        "/proc/mounts": "/dev/sda1 / ext4 rw,relatime 0 0\nproc /proc proc rw 0 0",
        "/proc/modules": "nvidia 1 0 - Live\nnvidia_uvm 1 0 - Live\nnvidia_peermem 1 0 - Live",
        "/proc/mdstat": "Personalities :\nunused devices: <none>",
        "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory hugetlb pids rdma misc",
        "/etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"',
        "/sys/devices/system/edac/mc/mc0/ce_count": "0",
        "/sys/devices/system/edac/mc/mc0/ue_count": "0",
        "/sys/class/net/eth0/carrier_changes": "2",
        "/sys/class/net/eth0/device/vendor": "0x8086",
        "/var/log/fabricmanager.log": "[Nov 21 2026 10:00:00] [INFO] [tid 1] fabric manager has started",
        "/var/run/cdi/nvidia.yaml": "kind: nvidia.com/gpu\ndevices:\n"
        + "".join(f'- name: "{index}"\n' for index in range(count))
        + f"- name: all\ncontainerEdits:\n  mounts:\n  - hostPath: /usr/lib/libcuda.so.{DRIVER}\n",
    }
    for index in range(count):
        files[f"/proc/driver/nvidia/gpus/{bus_id(index)}/information"] = "Model: NVIDIA H100"
        files[f"/dev/nvidia{index}"] = "device"
        folder = f"/sys/bus/pci/devices/{bus_id(index)}"
        files[f"{folder}/vendor"], files[f"{folder}/class"] = "0x10de", "0x030200"
        files[f"{folder}/aer_dev_fatal"] = "Undefined 0\nTOTAL_ERR_FATAL 0"
        files[f"{folder}/aer_dev_nonfatal"] = "TOTAL_ERR_NONFATAL 0"
        files[f"{folder}/aer_dev_correctable"] = "RxErr 0\nTOTAL_ERR_COR 0"
        files[f"{folder}/upstream/max_link_width"] = "16"
        files[f"{folder}/upstream/acs"] = "0000:15:00.0 0x1"
        files[f"{folder}/iommu_group/type"] = "identity"
        files[f"{folder}/numa_node"] = str(index // 4)
    for port in range(8 if count == 8 else 2):
        base = f"/sys/class/infiniband/mlx5_{port}"
        files |= {
            f"{base}/fw_ver": "28.41.1000",
            f"{base}/ports/1/state": "4: ACTIVE",
            f"{base}/ports/1/phys_state": "5: LinkUp",
            f"{base}/ports/1/rate": "400 Gb/sec (4X NDR)",
            f"{base}/ports/1/link_layer": "InfiniBand",
            f"{base}/ports/1/counters/link_downed": "1",
            f"{base}/ports/1/counters/symbol_error": "0",
            f"{base}/ports/1/counters/port_rcv_errors": "0",
        }
    return files


def _commands(count: int) -> dict[str, CommandResult]:
    return {
        "nvidia_smi_xml": ran(smi_xml([h100(index) for index in range(count)]), duration_s=1.5),
        "nvidia_smi_nvlink": ran(_nvlink(count)),
        "nvidia_smi_nvlink_errors": ran(""),
        "nvidia_smi_p2p": ran(_p2p(count)),
        "lspci": ran(_lspci(count)),
        "modinfo_nvidia": ran(DRIVER + "\n"),
        "dkms": ran(f"nvidia/{DRIVER}, 6.1.0-40-amd64, x86_64: installed\n"),
        "secure_boot": ran("SecureBoot disabled\n"),
        "ps": ran("    PID STAT PPID ELAPSED WCHAN COMMAND\n 1 Ss 0 90000 - systemd\n 90 S 2 90000 - kworker/0:0\n"),
        "units": ran(_units("nvidia-persistenced", "nvidia-fabricmanager")),
        "host_units": ran(_units("docker", "containerd", "kubelet")),
        "time_units": ran(_units("chrony")),
        "upgrade_units": ran("Id=unattended-upgrades.service\nLoadState=not-found\nActiveState=inactive\n"),
        "apt_hold": ran(""),
        "dpkg_nvidia": ran(f"nvidia-driver {DRIVER}-1 ii \nnvidia-modprobe {DRIVER}-1 ii \n"),
        "chrony_tracking": ran(
            f"0A000001,10.0.0.1,3,{NOW - 30:.1f},0.000020,0.00001,0.00002,-3.1,0.01,0.1,0.001,0.002,64.2,Normal\n"
        ),
        "docker_info": ran('{"Runtimes": {"nvidia": {}, "runc": {}}, "DefaultRuntime": "runc"}'),
        "containerd_version": ran("containerd github.com/containerd/containerd/v2 v2.3.1 abc\n"),
        "containerd_config": ran("[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]\n"),
        "toolkit_version": ran("NVIDIA Container Toolkit CLI version 1.20.0\n"),
        "smart_scan": ran("/dev/sda -d scsi # /dev/sda\n"),
        "smart:/dev/sda": ran('{"smart_status": {"passed": true}}'),
        "kernel_log": ran("", lines=900),
        "dmesg": ran("", lines=900),
    }


def healthy(count: int = 2, name: str = "gpu-01") -> Box:
    """A machine of which every check that applies passes."""
    evidence = HealthEvidence(
        machine=name,
        collected_at=NOW,
        boot_id=BOOT,
        uptime_s=90_000.0,
        duration_s=2.0,
        commands=_commands(count),
        files=_files(count),
        facts={
            "kernel": {
                "release": "6.1.0-40-amd64",
                "cpus": 128,
                "headers": True,
                "nvml": [f"libnvidia-ml.so.{DRIVER}"],
            },
            "disks": {"/": [10**12, 8 * 10**11, 10**7, 9 * 10**6]},
            "gpu_processes": {},
            **{name: {} for name in ("files_host", "files_pci", "files_driver", "files_infiniband", "files_logs")},
        },
    )
    expected = Expectation(
        sku="h100", device="nvidia.com/gpu", model="H100", count=count, ram_bytes=2**40, cpus=128, control_plane=False
    )
    return Box(evidence, expected, Knowledge(LIMITS, CATALOGUE))


def change(texts: Texts, path: str, text: str | None) -> Texts:
    """The texts with one of them different, or without it and all below it."""
    if text is None:
        return {key: value for key, value in texts.items() if key != path and not key.startswith(path + "/")}
    kept = {key: value for key, value in texts.items() if not key.startswith(path + "/")}
    return {**kept, path: text}


Mutation = Callable[[Box], Box]


def gpu_change(path: str, text: str | None) -> Mutation:
    """A machine whose first GPU differs from a healthy one in one value."""

    def mutate(box: Box) -> Box:
        return box.gpus(change(h100(0), path, text), h100(1))

    return mutate
