"""The checks of a machine: driver, bus, links, disks, clock, containers; one change at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.verdict import Action, Verdict
from pai_install.health.evidence.document import CommandResult
from pai_install.health.judge.product import same_model
from pai_install.health.memory.snapshot import Baseline, GpuBaseline, Snapshot
from tests.unit.health.machines import BOOT, DRIVER, NOW, Box, bus_id, change, h100, healthy, ran, smi_xml, uuid, volta

FAIL, WARN, PASS, SKIP, UNKNOWN = Verdict.FAIL, Verdict.WARN, Verdict.PASS, Verdict.SKIP, Verdict.UNKNOWN
Mutate = Callable[[Box], Box]


def smi(rc: int, text: str = "") -> Mutate:
    return lambda box: box.command("nvidia_smi_xml", CommandResult(rc=rc, stdout=text, duration_s=0.2))


def output(name: str, text: str) -> Mutate:
    return lambda box: box.output(name, text)


def looks(first: str, *later: str) -> Mutate:
    """Looks at the processes, of which one always sleeps."""
    asleep, header = " 10 S 1 9 - sh\n", "PID STAT PPID ELAPSED WCHAN COMMAND\n"
    again = "".join(header + text + asleep for text in later)
    return lambda box: box.output("ps", header + first + asleep).output("ps_again", again)


def file(path: str, text: str | None) -> Mutate:
    return lambda box: box.paths({path: text})


def numa(*nodes: str | None) -> Mutate:
    """The memory nodes of the GPUs, in order."""
    folder = "/sys/bus/pci/devices"
    return lambda box: box.paths({f"{folder}/{bus_id(index)}/numa_node": node for index, node in enumerate(nodes)})


def port(number: int, state: str, phys_state: str, *, downed: str) -> Mutate:
    base = f"/sys/class/infiniband/mlx5_{number}/ports/1"
    changes = {f"{base}/state": state, f"{base}/phys_state": phys_state, f"{base}/counters/link_downed": downed}
    return lambda box: box.paths(changes)


def without_links(box: Box) -> Box:
    """Both ports look for another end and never had one."""
    return port(0, "1: DOWN", "2: Polling", downed="0")(port(1, "1: DOWN", "2: Polling", downed="0")(box))


def closed(box: Box) -> Box:
    """With NVIDIA's kernel module that is not open."""
    version = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {DRIVER}  Release Build"
    return box.paths({"/proc/driver/nvidia/version": version})


def units(name: str, **states: str) -> Mutate:
    blocks = [
        f"Id={unit}.service\nLoadState=loaded\nActiveState={state}\nNRestarts=0" for unit, state in states.items()
    ]
    return output(name, "\n\n".join(blocks))


FABRIC_FATAL = "detected NVSwitch fatal error 20034 on fid 0"


def fabric_log(text: str, *, ago: float) -> Mutate:
    stamp = datetime.fromtimestamp(NOW - ago, UTC)
    return file("/var/log/fabricmanager.log", f"[{stamp:%b %d %Y %H:%M:%S}] [ERROR] [tid 1] {text}")


def fabric_package(version: str) -> str:
    return f"nvidia-driver-580 {DRIVER}-1 ii \nnvidia-fabricmanager-580 {version}-1 ii \n"


TRACKING = "0A000001,a,3,{time},{offset},0.1,0.1,0,0,0,{delay},{dispersion},64.0,{leap}"


def tracking(
    *, ref: str = "0A000001", offset: str = "0.00002", age: float = 30, leap: str = "Normal", dispersion: str = "0.002"
) -> Mutate:
    line = TRACKING.format(time=NOW - age, offset=offset, delay="0.001", dispersion=dispersion, leap=leap)
    return output("chrony_tracking", line.replace("0A000001", ref))


VIRTUAL_DISK = '{"smartctl": {"exit_status": 4}, "device": {"type": "scsi"}}'
MODULES = "nvidia 1 0 - Live\nnvidia_uvm 1 0 - Live\n"
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"
CASES: list[tuple[Mutate, str, Verdict, Action]] = [
    # driver
    (lambda box: box.command("nvidia_smi_xml", CommandResult(missing=True)), "driver-responds", FAIL, Action.CONFIG),
    (
        lambda box: box.command(
            "nvidia_smi_xml", CommandResult(timed_out=True, duration_s=30, state="D", unkillable=True)
        ),
        "driver-responds",
        FAIL,
        Action.REBOOT,
    ),
    (
        lambda box: box.command("nvidia_smi_xml", replace(box.evidence.commands["nvidia_smi_xml"], duration_s=25.0)),
        "driver-responds",
        WARN,
        Action.NONE,
    ),
    (smi(9, "NVIDIA-SMI has failed because it couldn't communicate"), "driver-status", FAIL, Action.REBOOT),
    (smi(18, MISMATCH), "driver-status", FAIL, Action.CONFIG),
    (smi(6, "Unable to determine the device handle for GPU"), "driver-status", FAIL, Action.REBOOT),
    (smi(8), "driver-status", FAIL, Action.CONFIG),
    (smi(12), "driver-status", FAIL, Action.CONFIG),
    (smi(14), "driver-status", FAIL, Action.RMA),
    (smi(15), "driver-status", FAIL, Action.REBOOT),
    (smi(77), "driver-status", FAIL, Action.REBOOT),
    (smi(0, "<nvidia_smi_log>"), "driver-status", FAIL, Action.REBOOT),
    (output("modinfo_nvidia", "575.57.08\n"), "driver-versions", FAIL, Action.REBOOT),
    (file("/proc/driver/nvidia/version", "NVRM version: x 575.57.08 y"), "driver-versions", FAIL, Action.REBOOT),
    (file("/proc/driver/nvidia/version", "no number"), "driver-versions", UNKNOWN, Action.NONE),
    (
        lambda box: box.fact("kernel", {"nvml": [f"libnvidia-ml.so.{DRIVER}", "libnvidia-ml.so.575.57.08"]}),
        "driver-versions",
        FAIL,
        Action.REBOOT,
    ),
    (output("nvidia_smi_xml", smi_xml([h100(0)], driver="570.148.08")), "driver-branch", WARN, Action.CONFIG),
    (output("nvidia_smi_xml", smi_xml([h100(0)], driver="470.10")), "driver-branch", FAIL, Action.CONFIG),
    (output("nvidia_smi_xml", smi_xml([volta()], driver="595.10")), "driver-branch", FAIL, Action.CONFIG),
    (output("nvidia_smi_xml", smi_xml([h100()], driver="")), "driver-branch", UNKNOWN, Action.NONE),
    (output("nvidia_smi_xml", smi_xml([h100()], driver="990.10.01")), "driver-branch", UNKNOWN, Action.NONE),
    (file("/proc/modules", "nouveau 1 0 - Live"), "driver-nouveau", PASS, Action.NONE),
    (
        lambda box: box.output("secure_boot", "SecureBoot enabled").log(
            "nvidia: module verification failed: signature"
        ),
        "driver-secure-boot",
        FAIL,
        Action.CONFIG,
    ),
    (output("secure_boot", "SecureBoot enabled"), "driver-secure-boot", PASS, Action.NONE),
    (output("dkms", f"nvidia/{DRIVER}, 6.1.0-30-amd64, x86_64: installed"), "driver-dkms", FAIL, Action.CONFIG),
    (
        output("dkms", f"nvidia/{DRIVER}, 6.1.0-40-amd64-extra, x86_64: installed"),
        "driver-dkms",
        FAIL,
        Action.CONFIG,
    ),
    (output("dkms", ""), "driver-dkms", SKIP, Action.NONE),
    (
        lambda box: box.fact("kernel", {"release": "6.1.0-40-amd64", "headers": False}),
        "driver-dkms",
        WARN,
        Action.NONE,
    ),
    (units("upgrade_units", **{"unattended-upgrades": "active"}), "driver-held", WARN, Action.CONFIG),
    (
        lambda box: units("upgrade_units", **{"unattended-upgrades": "active"})(box).output(
            "apt_hold", "nvidia-driver\n"
        ),
        "driver-held",
        PASS,
        Action.NONE,
    ),
    (
        lambda box: (
            units("upgrade_units", **{"unattended-upgrades": "active"})(box)
            .output("dpkg_nvidia", f"nvidia-driver-580 {DRIVER}-1 hi \n")
            .output("apt_hold", "nvidia-driver-580\n")
        ),
        "driver-held",
        PASS,
        Action.NONE,
    ),
    (output("dpkg_nvidia", ""), "driver-held", SKIP, Action.NONE),
    (file("/dev/nvidia-uvm", None), "driver-device-nodes", FAIL, Action.CONFIG),
    (
        lambda box: box.paths({"/dev/nvidia0": None, "/dev/nvidia1": None}),
        "driver-device-nodes",
        FAIL,
        Action.CONFIG,
    ),
    # DMA-BUF takes its place: with the open driver, on kernels since 5.12
    (file("/proc/modules", MODULES), "driver-peer-memory", PASS, Action.NONE),
    (lambda box: closed(box.files(__proc__modules=MODULES)), "driver-peer-memory", WARN, Action.CONFIG),
    (
        lambda box: box.files(__proc__modules=MODULES).fact("kernel", {"release": "5.10.0-28-amd64"}),
        "driver-peer-memory",
        WARN,
        Action.CONFIG,
    ),
    (
        lambda box: box.files(__proc__modules=MODULES).fact("kernel", {"release": "?"}),
        "driver-peer-memory",
        UNKNOWN,
        Action.NONE,
    ),
    # RDMA that nothing uses needs no GPUDirect
    (lambda box: without_links(closed(box.files(__proc__modules=MODULES))), "driver-peer-memory", SKIP, Action.NONE),
    (output("dcgm_health", '{"body": {"Overall Health": {"value": "Healthy"}}}'), "dcgm-health", PASS, Action.NONE),
    (output("dcgm_health", '{"body": {"Overall Health": {"value": "Warning"}}}'), "dcgm-health", WARN, Action.NONE),
    (output("dcgm_health", '{"body": {"Overall Health": {"value": "Failure"}}}'), "dcgm-health", FAIL, Action.DRAIN),
    (output("dcgm_health", "what?"), "dcgm-health", UNKNOWN, Action.NONE),
    # bus and layout
    (lambda box: box.expecting(count=4), "gpu-count", FAIL, Action.REBOOT),
    (lambda box: box.expecting(count=1), "gpu-count", WARN, Action.CONFIG),
    (output("nvidia_smi_xml", smi_xml([h100(0)])), "gpu-count", FAIL, Action.REBOOT),
    (output("nvidia_smi_xml", smi_xml([h100(0), h100(1)], attached=8)), "gpu-count", FAIL, Action.REBOOT),
    (file("/dev/nvidia1", None), "gpu-count", FAIL, Action.REBOOT),
    (
        output("lspci", f"{bus_id(0)} 3D controller [0302]: NVIDIA Device [10de:2330] (rev ff)\n"),
        "gpu-on-bus",
        FAIL,
        Action.REBOOT,
    ),
    (output("lspci", ""), "gpu-on-bus", UNKNOWN, Action.NONE),
    (
        lambda box: box.gpus(h100(0), change(h100(1), "product_name", "NVIDIA H200")),
        "gpu-mixed-models",
        WARN,
        Action.NONE,
    ),
    (file("/proc/meminfo", "MemTotal: 500000000 kB"), "host-memory", FAIL, Action.DRAIN),
    (lambda box: box.expecting(ram_bytes=None), "host-memory", SKIP, Action.NONE),
    (lambda box: box.expecting(cpus=256), "host-processors", FAIL, Action.CONFIG),
    (lambda box: box.expecting(device="amd.com/gpu", count=8), "other-devices", FAIL, Action.DRAIN),
    (
        lambda box: box.expecting(device="amd.com/gpu", count=1).output(
            "lspci", "0000:03:00.0 Display controller [0380]: AMD/ATI [1002:740f]\n"
        ),
        "other-devices",
        UNKNOWN,
        Action.NONE,
    ),
    (lambda box: box.expecting(device="enflame.com/dtu", count=1), "other-devices", UNKNOWN, Action.NONE),
    # fabric
    (output("nvidia_smi_p2p", "\tGPU0\tGPU1\n GPU0\tX\tTNS\n GPU1\tTNS\tX\n"), "gpu-peer-to-peer", WARN, Action.NONE),
    (output("nvidia_smi_p2p", ""), "gpu-peer-to-peer", SKIP, Action.NONE),
    (units("units", **{"nvidia-fabricmanager": "failed"}), "fabric-manager", FAIL, Action.CONFIG),
    (units("units", **{"nvidia-persistenced": "active"}), "fabric-manager", FAIL, Action.CONFIG),
    (output("lspci", f"{bus_id(0)} 3D controller [0302]: N [10de:2330]\n"), "fabric-manager", SKIP, Action.NONE),
    (
        file("/var/log/fabricmanager.log", "[ERROR] detected NVSwitch fatal error 20034 on fid 0"),
        "fabric-manager-log",
        FAIL,
        Action.REBOOT,
    ),
    (
        file("/var/log/fabricmanager.log", "[ERROR] detected NVSwitch non-fatal error 12028 on fid 0"),
        "fabric-manager-log",
        WARN,
        Action.NONE,
    ),
    (file("/var/log/fabricmanager.log", None), "fabric-manager-log", SKIP, Action.NONE),
    (
        lambda box: box.paths({"/var/log/fabricmanager.log": None}).fact("files_logs", None),
        "fabric-manager-log",
        UNKNOWN,
        Action.NONE,
    ),
    (lambda box: box.fact("files_logs", None), "host-evidence", WARN, Action.NONE),
    (fabric_log(FABRIC_FATAL, ago=600), "fabric-manager-log", FAIL, Action.REBOOT),
    (fabric_log(FABRIC_FATAL, ago=88_000), "fabric-manager-log", WARN, Action.NONE),
    (fabric_log(FABRIC_FATAL, ago=100_000), "fabric-manager-log", PASS, Action.NONE),
    (fabric_log(FABRIC_FATAL, ago=100_000_000), "fabric-manager-log", PASS, Action.NONE),
    (
        lambda box: fabric_log(FABRIC_FATAL, ago=600 + 5 * 3600)(box.output("timedatectl", "Timezone=Etc/GMT+5\n")),
        "fabric-manager-log",
        FAIL,
        Action.REBOOT,
    ),
    (
        fabric_log("detected NVSwitch non-fatal error 12028 on fid 0", ago=88_000),
        "fabric-manager-log",
        PASS,
        Action.NONE,
    ),
    (units("units", **{"nvidia-fabricmanager": "activating"}), "fabric-manager", FAIL, Action.CONFIG),
    (output("dpkg_nvidia", fabric_package("580.65.06")), "fabric-manager", FAIL, Action.CONFIG),
    (output("dpkg_nvidia", fabric_package(DRIVER)), "fabric-manager", PASS, Action.NONE),
    (output("rpm_nvidia", "nvidia-fabric-manager-580.65.06-1.x86_64"), "fabric-manager", FAIL, Action.CONFIG),
    (
        lambda box: units("units", **{"nvidia-fabricmanager": "failed"})(
            box.gpus(*[change(h100(index), "product_name", "NVIDIA B200") for index in (0, 1)]).output(
                "lspci",
                f"{bus_id(0)} 3D controller [0302]: N [10de:2901]\n{bus_id(1)} 3D controller [0302]: N [10de:2901]\n",
            )
        ),
        "fabric-manager",
        FAIL,
        Action.CONFIG,
    ),
    (
        lambda box: box.output("nvidia_smi_p2p", "\tGPU0\tGPU1\n GPU0\tX\tNS\n GPU1\tNS\tX\n"),
        "gpu-peer-to-peer",
        WARN,
        Action.NONE,
    ),
    (
        lambda box: box.gpus(*[change(h100(index), "product_name", "NVIDIA L40S") for index in (0, 1)]).output(
            "nvidia_smi_p2p", "\tGPU0\tGPU1\n GPU0\tX\tNS\n GPU1\tNS\tX\n"
        ),
        "gpu-peer-to-peer",
        PASS,
        Action.NONE,
    ),
    (
        lambda box: box.gpus(
            *[change(h100(index), "product_name", "NVIDIA GeForce RTX 4090") for index in (0, 1)]
        ).output("nvidia_smi_p2p", "\tGPU0\tGPU1\n GPU0\tX\tGNS\n GPU1\tTNS\tX\n"),
        "gpu-peer-to-peer",
        PASS,
        Action.NONE,
    ),
    (
        lambda box: units("nvidia_units", **{"nvidia-imex": "inactive"})(
            box.gpus(change(h100(), "product_name", "NVIDIA GB200"))
        ),
        "imex",
        WARN,
        Action.NONE,
    ),
    # PCIe errors
    (
        file(f"/sys/bus/pci/devices/{bus_id(0)}/aer_dev_fatal", "SDES 1\nTOTAL_ERR_FATAL 1"),
        "pcie-aer",
        FAIL,
        Action.DRAIN,
    ),
    (
        lambda box: box.log("[89000.5] pcieport 0000:17:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal)"),
        "pcie-aer",
        FAIL,
        Action.DRAIN,
    ),
    (
        lambda box: box.log("[   12.5] pcieport 0000:17:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal)"),
        "pcie-aer",
        WARN,
        Action.NONE,
    ),
    (
        lambda box: box.log(f"[89000.5] nvidia {bus_id(0)}: AER: Uncorrected (Non-Fatal) error received"),
        "pcie-aer",
        WARN,
        Action.NONE,
    ),
    (
        lambda box: box.log("[89000.5] nvme 0000:41:00.0: AER: Uncorrectable (Fatal) error received"),
        "pcie-aer",
        PASS,
        Action.NONE,
    ),
    (
        lambda box: box.log("[89000.5] pcieport 0000:17:00.0: AER: Uncorrected (Fatal) error received: 0000:41:00.0"),
        "pcie-aer",
        PASS,
        Action.NONE,
    ),
    (
        file(f"/sys/bus/pci/devices/{bus_id(0)}/aer_dev_nonfatal", "UnsupReq 1\nTOTAL_ERR_NONFATAL 1"),
        "pcie-aer",
        PASS,
        Action.NONE,
    ),
    (file(f"/sys/bus/pci/devices/{bus_id(0)}/aer_dev_fatal", "ERR!"), "pcie-aer", UNKNOWN, Action.NONE),
    (
        lambda box: box.paths({path: None for path in box.evidence.files if "/aer_dev_" in path}),
        "pcie-aer",
        SKIP,
        Action.NONE,
    ),
    # memory nodes
    (numa("0", "1"), "gpu-numa-node", PASS, Action.NONE),
    (numa("0", "-1"), "gpu-numa-node", WARN, Action.CONFIG),
    (numa("-1", "-1"), "gpu-numa-node", SKIP, Action.NONE),
    (numa(None, None), "gpu-numa-node", SKIP, Action.NONE),
    (numa("0", None), "gpu-numa-node", UNKNOWN, Action.NONE),
    (numa("0", "ERR!"), "gpu-numa-node", UNKNOWN, Action.NONE),
    (lambda box: box.fact("files_pci", None), "gpu-numa-node", UNKNOWN, Action.NONE),
    # network
    (file("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN"), "rdma-ports", FAIL, Action.DRAIN),
    (file("/sys/class/infiniband/mlx5_0/ports/1/rate", "huh"), "rdma-ports", UNKNOWN, Action.NONE),
    (
        lambda box: box.paths(
            {
                "/sys/class/infiniband/mlx5_0/ports/1/state": "1: DOWN",
                "/sys/class/infiniband/mlx5_0/ports/1/phys_state": "3: Disabled",
            }
        ),
        "rdma-ports",
        SKIP,
        Action.NONE,
    ),
    (
        lambda box: box.paths({f"/sys/class/infiniband/mlx5_{n}/ports/1/rate": "100 Gb/sec (4X EDR)" for n in (0, 1)}),
        "rdma-ports",
        WARN,
        Action.NONE,
    ),
    (port(0, "1: DOWN", "2: Polling", downed="0"), "rdma-ports", WARN, Action.NONE),
    (port(0, "1: DOWN", "2: Polling", downed="1"), "rdma-ports", FAIL, Action.DRAIN),
    (
        # ports that nobody uses, as of a network card for storage or management
        without_links,
        "rdma-ports",
        WARN,
        Action.NONE,
    ),
    # disks and memory
    (lambda box: box.fact("disks", {"/": [100, 19, 10, 9]}), "disk-space", FAIL, Action.CONFIG),
    (lambda box: box.fact("disks", {"/": [10**12, 15 * 10**10, 10, 9]}), "disk-space", WARN, Action.NONE),
    (lambda box: box.fact("disks", {"/": [10**12, 5 * 10**10, 10, 9]}), "disk-space", FAIL, Action.CONFIG),
    (lambda box: box.fact("disks", {"/": [10**12, 9 * 10**11, 100, 5]}), "disk-space", FAIL, Action.CONFIG),
    (lambda box: box.fact("disks", {"/": [0, 0, 0, 0]}), "disk-space", UNKNOWN, Action.NONE),
    (lambda box: box.fact("disks", {}), "disk-space", UNKNOWN, Action.NONE),
    (file("/proc/mounts", "/dev/sda1 / ext4 ro,relatime 0 0"), "disk-read-only", FAIL, Action.DRAIN),
    (file("/proc/mounts", "/dev/sdb1 /var/lib/kubelet xfs ro 0 0"), "disk-read-only", FAIL, Action.DRAIN),
    (file("/proc/mounts", "/dev/sda1 /data ext4 ro,errors=remount-ro 0 0"), "disk-read-only", FAIL, Action.DRAIN),
    (
        lambda box: box.files(__proc__mounts="/dev/sdb1 /data ext4 ro 0 0").log(
            "[89000.0] EXT4-fs (sdb1): Remounting filesystem read-only"
        ),
        "disk-read-only",
        FAIL,
        Action.DRAIN,
    ),
    (file("/proc/mounts", "/dev/nvme1n1 /mnt/datasets xfs ro,relatime 0 0"), "disk-read-only", PASS, Action.NONE),
    (
        file("/proc/mounts", "/dev/rbd0 /var/lib/kubelet/pods/x/volumes/kubernetes.io~csi/pv/mount ext4 ro 0 0"),
        "disk-read-only",
        PASS,
        Action.NONE,
    ),
    (file("/proc/mounts", "/dev/loop1 /snap/x ext4 ro 0 0"), "disk-read-only", PASS, Action.NONE),
    (output("smart:/dev/sda", '{"smart_status": {"passed": false}}'), "disk-smart", FAIL, Action.RMA),
    (output("smart:/dev/sda", "{}"), "disk-smart", UNKNOWN, Action.NONE),
    (output("smart:/dev/sda", VIRTUAL_DISK), "disk-smart", SKIP, Action.NONE),
    (output("smart:/dev/sda", '{"device": {"type": "nvme"}, "smartctl": {}}'), "disk-smart", UNKNOWN, Action.NONE),
    (output("smart_scan", ""), "disk-smart", SKIP, Action.NONE),
    (file("/proc/mdstat", "md0 : active raid1 sdb1[1]\n  100 blocks [2/1] [_U]"), "disk-raid", FAIL, Action.RMA),
    (file("/proc/mdstat", "md0 : active raid1 sdb1[1]\n  100 blocks [2/2] [UU]"), "disk-raid", PASS, Action.NONE),
    (file("/sys/devices/system/edac/mc/mc0/ue_count", "1"), "host-edac", FAIL, Action.RMA),
    (file("/sys/devices/system/edac/mc/mc0/ue_count", "?"), "host-edac", UNKNOWN, Action.NONE),
    (file("/proc/swaps", "Filename Type\n/swapfile file 1 0 -2"), "host-swap", FAIL, Action.CONFIG),
    (
        lambda box: box.paths(
            {"/proc/swaps": "Filename\n/dev/zram0 p 1 0 1", "/var/lib/kubelet/config.yaml": "failSwapOn: false\n"}
        ),
        "host-swap",
        WARN,
        Action.NONE,
    ),
    (file("/sys/fs/cgroup/cgroup.controllers", "cpu"), "host-cgroups", FAIL, Action.CONFIG),
    (file("/sys/fs/cgroup/cgroup.controllers", None), "host-cgroups", WARN, Action.CONFIG),
    (
        lambda box: box.paths({"/sys/fs/cgroup/cgroup.controllers": None, "/run/systemd/container": "systemd-nspawn"}),
        "host-cgroups",
        SKIP,
        Action.NONE,
    ),
    (file("/proc/modules", None), "driver-nouveau", SKIP, Action.NONE),
    # processes
    (output("ps", "  9 D 1 4000 nvidia_x nvidia-smi\n 10 S 1 9 - sh\n"), "processes-stuck", FAIL, Action.REBOOT),
    (output("ps", "  9 D 1 40 nvidia_x nvidia-smi\n 10 S 1 9 - sh\n"), "processes-stuck", WARN, Action.NONE),
    (
        looks("  9 D 1 4000 nvidia_x nvidia-smi\n", "  9 D 1 4001 nvidia_x nvidia-smi\n"),
        "processes-stuck",
        FAIL,
        Action.REBOOT,
    ),
    (
        looks("  9 D 1 4000 nvidia_x nvidia-persiste\n", "  9 S 1 4001 - nvidia-persiste\n"),
        "processes-stuck",
        PASS,
        Action.NONE,
    ),
    (looks("  9 D 1 4000 nvidia_x nvidia-smi\n"), "processes-stuck", FAIL, Action.REBOOT),
    (looks("  9 D 1 0 x nvidia-containe\n", "  1 S 0 9 - systemd\n"), "processes-stuck", PASS, Action.NONE),
    # containerd waits for a busy disk at two looks, and works at one between them
    (
        looks("  9 D 1 900 x containerd\n", "  9 D 1 901 x containerd\n", "  9 S 1 902 - containerd\n"),
        "processes-stuck",
        PASS,
        Action.NONE,
    ),
    (output("ps", "  9 Zl 1 4000 - python\n"), "processes-stuck", WARN, Action.NONE),
    (
        looks("  9 Z 1 900 - sh <defunct>\n", *["  9 Z 1 900 - sh <defunct>\n"] * 3),
        "processes-stuck",
        WARN,
        Action.NONE,
    ),
    (looks("  9 Z 1 900 - sh <defunct>\n", "", "", ""), "processes-stuck", PASS, Action.NONE),
    # ages of processes that started after ps read the clock
    (output("ps", "  9 Z 1 4123168608 - sh <defunct>\n 10 S 1 9 - sh\n"), "processes-stuck", PASS, Action.NONE),
    (output("ps", "  9 Z 1 4294967295 - sh <defunct>\n 10 S 1 9 - sh\n"), "processes-stuck", PASS, Action.NONE),
    (output("ps", "  1 S 0 9 - systemd\n 50 D 2 86400 - md0_resync\n"), "processes-stuck", PASS, Action.NONE),
    # clock
    (tracking(leap="Not synchronised"), "clock-synchronised", FAIL, Action.CONFIG),
    (tracking(ref="7F7F0101"), "clock-synchronised", FAIL, Action.CONFIG),
    (lambda box: tracking(ref="7F7F0101")(box).expecting(control_plane=True), "clock-synchronised", PASS, Action.NONE),
    (tracking(age=5000), "clock-synchronised", WARN, Action.NONE),
    (tracking(offset="-0.6"), "clock-offset", FAIL, Action.CONFIG),
    (tracking(offset="0.06"), "clock-offset", WARN, Action.NONE),
    (tracking(dispersion="0.2"), "clock-offset", WARN, Action.NONE),
    (units("time_units", chrony="active", ntpd="active"), "clock-service", FAIL, Action.CONFIG),
    (units("time_units", chrony="active", chronyd="active"), "clock-service", PASS, Action.NONE),
    (units("time_units", chrony="inactive"), "clock-service", FAIL, Action.CONFIG),
    # containers
    (units("host_units", kubelet="failed", docker="active"), "container-services", FAIL, Action.DRAIN),
    (output("host_units", "Id=kubelet.service\nLoadState=not-found"), "container-services", SKIP, Action.NONE),
    (
        output("host_units", "Id=kubelet.service\nLoadState=loaded\nActiveState=active\nNRestarts=80"),
        "container-services",
        WARN,
        Action.NONE,
    ),
    (output("docker_info", '{"Runtimes": {"runc": {}}}'), "container-docker-runtime", FAIL, Action.CONFIG),
    (output("containerd_config", "version = 3"), "container-containerd-runtime", FAIL, Action.CONFIG),
    (file("/var/run/cdi/nvidia.yaml", None), "container-cdi", WARN, Action.CONFIG),
    (
        file("/var/run/cdi/nvidia.yaml", 'kind: nvidia.com/gpu\n- name: "0"\nlibcuda.so.575.57.08'),
        "container-cdi",
        FAIL,
        Action.CONFIG,
    ),
    (file("/var/run/cdi/nvidia.yaml", 'kind: nvidia.com/gpu\n- name: "0"\n'), "container-cdi", FAIL, Action.CONFIG),
    (file("/var/run/cdi/nvidia.yaml", "kind: nvidia.com/gpu\n"), "container-cdi", UNKNOWN, Action.NONE),
    (
        output("docker_gpu", f"GPU 0: H100 (UUID: {uuid(0)})\nGPU 1: H100 (UUID: {uuid(1)})\n"),
        "container-gpu-docker",
        PASS,
        Action.NONE,
    ),
    (output("docker_gpu", f"GPU 0: H100 (UUID: {uuid(0)})\n"), "container-gpu-docker", FAIL, Action.CONFIG),
    (
        lambda box: box.command("containerd_gpu", CommandResult(rc=1, stderr="unresolvable CDI devices")),
        "container-gpu-containerd",
        FAIL,
        Action.CONFIG,
    ),
    (output("pod_gpu", f"GPU 0: H100 (UUID: {uuid(1)})\n"), "container-gpu-pod", PASS, Action.NONE),
    (output("pod_gpu", "GPU 0: H100 (UUID: GPU-deadbeef)\n"), "container-gpu-pod", FAIL, Action.CONFIG),
    (output("pod_gpu", "no devices"), "container-gpu-pod", FAIL, Action.CONFIG),
    (
        lambda box: box.command("pod_gpu", CommandResult(rc=1, stderr="StartError")),
        "container-gpu-pod",
        FAIL,
        Action.CONFIG,
    ),
    (lambda box: box.command("pod_gpu", CommandResult(timed_out=True)), "container-gpu-pod", UNKNOWN, Action.NONE),
    (lambda box: box.fact("disks", None), "host-evidence", WARN, Action.NONE),
]


@pytest.mark.parametrize(
    ("mutate", "check", "verdict", "action"), CASES, ids=[f"{n}-{row[1]}-{row[2]}" for n, row in enumerate(CASES)]
)
def test_one_change_gives_its_verdict_and_action(mutate: Mutate, check: str, verdict: Verdict, action: Action) -> None:
    box = mutate(healthy())
    finding = box.finding(check)
    assert (finding.verdict, finding.action) == (verdict, action), finding
    if verdict in (FAIL, WARN):
        assert finding.message


@pytest.mark.parametrize(
    ("mutate", "check"),
    [
        (units("units", **{"nvidia-fabricmanager": "activating"}), "fabric-manager"),
        (lambda box: box.gpus(change(h100(0), "fabric/state", "In Progress"), h100(1)), "gpu-fabric"),
        (tracking(leap="Not synchronised"), "clock-synchronised"),
        (units("host_units", kubelet="activating", containerd="active"), "container-services"),
    ],
)
def test_what_is_on_its_way_warns_in_the_first_minutes_and_fails_later(mutate: Mutate, check: str) -> None:
    box = mutate(healthy())
    assert box.verdict(check) is FAIL
    young = replace(box, evidence=replace(box.evidence, uptime_s=60.0))
    assert young.verdict(check) is WARN


def test_docker_that_its_socket_starts_is_at_rest() -> None:
    asleep = "Id=docker.service\nLoadState=loaded\nActiveState=inactive\n"
    listens = "\nId=docker.socket\nLoadState=loaded\nActiveState=active\n"
    silent = healthy().command("docker_info", CommandResult(rc=1))
    assert silent.output("host_units", asleep).verdict("container-services") is FAIL
    assert silent.output("host_units", asleep + listens).verdict("container-services") is PASS
    failed = asleep.replace("=inactive", "=failed")
    assert silent.output("host_units", failed + listens).verdict("container-services") is FAIL
    assert healthy().output("host_units", asleep).verdict("container-services") is PASS


def test_hang_says_where_and_the_rest_is_unknown_not_failed(snapshot: SnapshotAssertion) -> None:
    hung = CommandResult(timed_out=True, duration_s=30.2, state="D", wchan="nvidia_ioctl", unkillable=True)
    report = healthy().command("nvidia_smi_xml", hung).report()
    failed = {item.id: item for item in report.findings if item.verdict is FAIL}
    assert set(failed) == {"driver-responds"}
    assert failed["driver-responds"].value == snapshot
    assert failed["driver-responds"].message == snapshot
    assert {item.verdict for item in report.findings if item.id == "gpu-ecc-uncorrected"} == {UNKNOWN}


def test_text_output_stands_in_where_the_xml_is_refused() -> None:
    text = "\n======NVSMI LOG======\n\nDriver Version : 580.95.05\nAttached GPUs : 1\nGPU 00000000:18:00.0\n"
    text += "    Product Name                : NVIDIA H100 80GB HBM3\n    Retired Pages\n        Single Bit ECC : 0\n"
    text += "    Remapped Rows\n        Remapping Failure Occurred : Yes\n"
    box = smi(255, "boom")(healthy(1)).command("nvidia_smi_text", ran(text))
    assert box.verdict("gpu-remap-failed") is FAIL
    assert box.verdict("driver-status") is FAIL


def test_table_stands_in_where_there_is_nothing_else() -> None:
    rows = [
        "| NVIDIA-SMI 580.95.05    Driver Version: 580.95.05    CUDA Version: 13.0 |",
        "|   0  NVIDIA H100 80GB     On  | 00000000:18:00.0 Off |                    0 |",
        "| N/A   31C    P0    70W / 700W |      0MiB / 81559MiB |      0%      Default |",
        "|   1  NVIDIA H100 80GB     On  | 00000000:19:00.0 Off |                 ERR! |",
        "|ERR!   ERR! ERR!    ERR! / ERR!|      0MiB / 81559MiB |    ERR!      Default |",
    ]
    box = smi(255, "boom")(healthy()).command("nvidia_smi_table", ran("\n".join(rows)))
    verdicts = {item.device: item.verdict for item in box.findings("gpu-readable")}
    assert verdicts == {bus_id(0): PASS, bus_id(1): FAIL}


def test_missing_gpu_is_named(snapshot: SnapshotAssertion) -> None:
    finding = healthy(8).output("nvidia_smi_xml", smi_xml([h100(index) for index in range(7)])).finding("gpu-count")
    assert bus_id(7) in finding.message
    assert finding.value == snapshot
    assert finding.expected == "8 (layout)"


def test_sysfs_stands_in_for_lspci() -> None:
    assert healthy().command("lspci", CommandResult(missing=True)).verdict("gpu-count") is PASS


def test_stand_in_for_nvidia_smi_is_compared_with_the_layout_only() -> None:
    nothing = {path: None for path in healthy().evidence.files if "nvidia" in path or path.startswith("/sys/bus/pci")}
    box = healthy().paths(nothing).output("lspci", "")
    assert box.verdict("gpu-count") is UNKNOWN
    assert box.expecting(count=4).verdict("gpu-count") is FAIL
    assert box.verdict("driver-device-nodes") is UNKNOWN


def test_cpu_only_machine_skips_every_gpu_check() -> None:
    nothing = {path: None for path in healthy().evidence.files if "nvidia" in path or path.startswith("/sys/bus/pci")}
    box = healthy().paths(nothing).output("lspci", "").command("nvidia_smi_xml", CommandResult(missing=True))
    report = box.expecting(device="", model="", count=None).report()
    assert {item.verdict for item in report.findings if item.id.startswith(("gpu-", "driver-"))} == {SKIP}
    assert report.verdict is PASS


def test_machine_that_should_have_gpus_and_has_no_driver_fails() -> None:
    box = healthy().command("nvidia_smi_xml", CommandResult(missing=True))
    assert box.verdict("driver-responds") is FAIL
    assert box.finding("gpu-count").verdict in (FAIL, UNKNOWN)


@pytest.mark.parametrize(
    ("name", "wanted", "same"),
    [
        ("Tesla V100-SXM2-32GB", "V100", True),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb", True),
        ("NVIDIA A100-SXM4-40GB", "a100-80gb", False),
        ("NVIDIA T4", "Tesla_T4", True),
        ("NVIDIA H100 80GB HBM3", "A100", False),
        ("NVIDIA GeForce RTX 2080 Ti", "GeForce RTX 2080 Ti", True),
        ("Tesla K80", "K80", True),
        ("NVIDIA L40S", "l40s", True),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB", True),
        ("NVIDIA A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB", True),
        ("NVIDIA A100 80GB PCIe", "a100-80gb", True),
        ("NVIDIA A100 80GB PCIe", "A100-SXM4-80GB", False),
        ("NVIDIA H100 80GB HBM3", "H100-SXM5", True),
        ("NVIDIA H100 80GB HBM3", "H100-PCIe", False),
        ("NVIDIA H100 NVL", "H100", True),
        ("Tesla V100-PCIE-16GB", "V100 32 GB", False),
        ("Tesla V100-PCIE-16GB", "nvidia_tesla_v100", True),
        ("NVIDIA A10", "A10-24GB", True),
        ("NVIDIA A10-24Q", "A10", True),
        ("NVIDIA GeForce RTX 3090", "rtx3090", True),
        ("NVIDIA GeForce RTX 2080 Ti", "RTX2080Ti", True),
        ("NVIDIA GeForce RTX 2080 Ti", "RTX 2080", False),
        ("NVIDIA GeForce RTX 4070 SUPER", "RTX 4070", False),
        ("NVIDIA RTX A6000", "RTXA6000", True),
        ("NVIDIA RTX A6000", "RTX 6000", False),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada", True),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000", True),
        ("NVIDIA GH200 480GB", "H200", False),
        *[
            (f"NVIDIA {name}", wanted, False)
            for pair in ("A10 A100", "L4 L40S", "L4 L40", "L40 L40S", "H20 H200", "T4 T400", "A2 A2000", "A10 A10G")
            for name, wanted in (pair.split(), reversed(pair.split()))
        ],
    ],
)
def test_models_are_compared_by_their_telling_words(name: str, wanted: str, same: bool) -> None:
    assert same_model(name, wanted) is same


# NVLink


def nvlink(*links: str) -> str:
    return f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {uuid(0)})\n" + "".join(
        f"\t Link {number}: {text}\n" for number, text in enumerate(links)
    )


UP = "26.562 GB/s"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (nvlink(*[UP] * 18), PASS),
        (nvlink(*[UP] * 17, "<inactive>"), FAIL),
        (nvlink(*[UP] * 17), FAIL),
        (nvlink(*[UP] * 17, "20.1 GB/s"), WARN),
        (nvlink() + "Nvlink queries are not supported for Devices in MIG mode\n", SKIP),
        (nvlink() + "NVML: all links are inActive\n", SKIP),
        (f"GPU 0: NVIDIA L40S (UUID: {uuid(0)})\nNVML: all links are inActive\n", SKIP),
        ("", SKIP),
    ],
)
def test_nvlink(text: str, verdict: Verdict) -> None:
    assert healthy(1).output("nvidia_smi_nvlink", text).verdict("nvlink-links") is verdict


@pytest.mark.parametrize(
    ("name", "links", "count", "verdict"),
    [
        ("Tesla V100-PCIE-16GB", [], 2, SKIP),
        ("Tesla V100-SXM2-16GB", ["<inactive>"] * 6, 1, SKIP),
        ("Tesla V100-SXM2-16GB", ["<inactive>"] * 6, 2, FAIL),
        ("NVIDIA A100-SXM4-40GB", ["<inactive>"] * 12, 1, SKIP),
        ("NVIDIA H100 80GB HBM3", ["<inactive>"] * 18, 1, SKIP),
        ("NVIDIA H100 80GB HBM3", ["<inactive>"] * 18, 2, FAIL),
        ("NVIDIA H200 NVL", ["<inactive>"] * 18, 2, SKIP),
        ("NVIDIA H200", ["<inactive>"] * 18, 2, FAIL),
        ("NVIDIA GH200 480GB", ["<inactive>"] * 18, 1, SKIP),
        ("NVIDIA A800-SXM4-80GB", ["25 GB/s"] * 8, 2, PASS),
        ("NVIDIA A800-SXM4-80GB", ["25 GB/s"] * 7, 2, FAIL),
        ("NVIDIA A100-SXM4-80GB", ["25 GB/s"] * 8, 2, FAIL),
    ],
)
def test_links_are_counted_only_where_the_model_and_the_machine_must_have_them(
    name: str, links: list[str], count: int, verdict: Verdict
) -> None:
    cards = [change(h100(index), "product_name", name) for index in range(count)]
    text = "".join(
        f"GPU {index}: {name} (UUID: {uuid(index)})\n"
        + "".join(f"\t Link {number}: {link}\n" for number, link in enumerate(links))
        for index in range(count)
    )
    box = healthy(count).gpus(*cards).output("nvidia_smi_nvlink", text)
    assert {item.verdict for item in box.findings("nvlink-links")} == {verdict}


def test_a_single_gpu_of_a_layout_with_more_still_misses_its_links() -> None:
    text = nvlink(*["<inactive>"] * 18)
    assert healthy(1).expecting(count=8).output("nvidia_smi_nvlink", text).verdict("nvlink-links") is FAIL


def test_links_that_were_accepted_as_they_are_pass() -> None:
    accepted = Baseline(NOW, {bus_id(0): GpuBaseline(uuid=uuid(0), nvlinks=12)})
    box = healthy(1).knowing(baselines={"gpu-01": accepted})
    twelve = box.output("nvidia_smi_nvlink", nvlink(*[UP] * 12, *["<inactive>"] * 6))
    assert twelve.verdict("nvlink-links") is PASS
    eleven = box.output("nvidia_smi_nvlink", nvlink(*[UP] * 11, *["<inactive>"] * 7))
    assert eleven.verdict("nvlink-links") is FAIL


def test_gpu_that_nvlink_does_not_show_is_unknown() -> None:
    assert healthy(2).output("nvidia_smi_nvlink", nvlink(*[UP] * 18)).verdict("nvlink-links") is UNKNOWN


def test_nvlink_errors_are_judged_by_their_growth(snapshot: SnapshotAssertion) -> None:
    text = "GPU 0: H100 (UUID: GPU-1)\n\t Link 0: Replay Errors: 50\n\t Link 0: CRC Errors: 50\n"
    before = Snapshot(NOW - 600, BOOT, counters={"nvlink 0": {"link 0: Replay Errors": 0, "link 0: CRC Errors": 0}})
    box = healthy().output("nvidia_smi_nvlink_errors", text)
    assert box.verdict("nvlink-errors") is SKIP
    findings = box.knowing(history={"gpu-01": [before]}).findings("nvlink-errors")
    assert [item.message for item in findings] == snapshot


@pytest.mark.parametrize(
    ("counter", "growth", "seconds", "verdict"),
    [
        ("Replay Errors", 1, 5, WARN),
        ("Replay Errors", 1, 600, PASS),
        ("Replay Errors", 10, 600, FAIL),
        ("Recovery Errors", 60, 600, FAIL),
        ("Link recovery failed events", 60, 600, FAIL),
        ("Link recovery successful events", 60, 600, SKIP),
        ("FEC Errors - 0", 10_000_000, 3600, SKIP),
        ("Symbol Errors", 10_000, 3600, SKIP),
        ("Tx packets", 10_000_000, 60, SKIP),
        ("CRC Errors", 50_000, 60, FAIL),
    ],
)
def test_of_the_nvlink_counters_only_faults_are_judged(
    counter: str, growth: int, seconds: int, verdict: Verdict
) -> None:
    before = Snapshot(NOW - seconds, BOOT, counters={"nvlink 0": {f"link 0: {counter}": 100.0}})
    box = healthy(1).output(
        "nvidia_smi_nvlink_errors", f"GPU 0: B200 (UUID: x)\n\t Link 0: {counter}: {100 + growth}\n"
    )
    assert box.knowing(history={"gpu-01": [before]}).verdict("nvlink-errors") is verdict


# Growth of network and memory counters


def test_port_errors_and_flaps_are_judged_by_their_growth() -> None:
    before = Snapshot(
        NOW - 3600,
        BOOT,
        counters={
            "port mlx5_0/1": {"link_downed": 0, "symbol_error": 0},
            "port mlx5_1/1": {"link_downed": 1, "symbol_error": 0},
            "net eth0": {"carrier_changes": 2},
            "edac": {"corrected": 0},
        },
    )
    box = healthy().knowing(history={"gpu-01": [before]})
    grown = {item.device: item.verdict for item in box.findings("rdma-errors")}
    assert grown == {"mlx5_0/1": FAIL}
    assert box.verdict("network-flaps") is PASS
    noisy = box.paths({"/sys/class/infiniband/mlx5_1/ports/1/counters/symbol_error": "500"})
    assert [item.verdict for item in noisy.findings("rdma-errors") if item.device == "mlx5_1/1"] == [WARN]
    assert box.paths({"/sys/class/net/eth0/carrier_changes": "9"}).verdict("network-flaps") is WARN
    assert box.paths({"/sys/devices/system/edac/mc/mc0/ce_count": "3"}).verdict("host-edac") is WARN


def test_corrected_pcie_errors_are_judged_by_their_growth() -> None:
    path = f"/sys/bus/pci/devices/{bus_id(0)}/aer_dev_correctable"
    before = Snapshot(NOW - 3600, BOOT, counters={f"pci {bus_id(0)}": {"aer corrected": 0}})
    box = healthy().knowing(history={"gpu-01": [before]})
    assert box.paths({path: "RxErr 500\nTOTAL_ERR_COR 500"}).verdict("pcie-aer") is WARN
    assert box.paths({path: "RxErr 50\nTOTAL_ERR_COR 50"}).verdict("pcie-aer") is PASS


def test_uncorrected_pcie_errors_that_grow_warn() -> None:
    path = f"/sys/bus/pci/devices/{bus_id(0)}/aer_dev_nonfatal"
    before = Snapshot(NOW - 3600, BOOT, counters={f"pci {bus_id(0)}": {"aer nonfatal": 1}})
    box = healthy().knowing(history={"gpu-01": [before]})
    assert box.paths({path: "TOTAL_ERR_NONFATAL 2"}).verdict("pcie-aer") is WARN
    assert box.paths({path: "TOTAL_ERR_NONFATAL 1"}).verdict("pcie-aer") is PASS


def test_replaced_gpu_is_reported_once_with_a_way_to_accept_it() -> None:
    before = Snapshot(NOW - 3600, BOOT, gpus={bus_id(0): uuid(0), bus_id(1): uuid(7)})
    finding = healthy().knowing(history={"gpu-01": [before]}).finding("gpu-replaced")
    assert finding.verdict is WARN
    assert finding.value == bus_id(1)
    assert "baseline --accept" in finding.remedy
    same = Snapshot(NOW - 3600, BOOT, gpus={bus_id(0): uuid(0), bus_id(1): uuid(1)})
    assert healthy().knowing(history={"gpu-01": [same]}).verdict("gpu-replaced") is PASS


def test_disks_under_one_file_system_are_counted_once() -> None:
    one = [10**12, 8 * 10**11, 10, 9]
    box = healthy().fact("disks", {"/": one, "/var": one, "/data": [10**12, 10**10, 10, 9]})
    assert {item.device: item.verdict for item in box.findings("disk-space")} == {"/": PASS, "/data": FAIL}


@pytest.mark.parametrize(("year", "verdict"), [(2026, PASS), (2031, UNKNOWN)])
def test_list_of_maintained_branches_ends(year: int, verdict: Verdict) -> None:
    """Nothing is known of a branch after the day until which NVIDIA said that it maintains it."""
    box = healthy(1)
    later = replace(box, evidence=replace(box.evidence, collected_at=datetime(year, 11, 1, tzinfo=UTC).timestamp()))
    assert later.verdict("driver-branch") is verdict
    ended = later.output("nvidia_smi_xml", smi_xml([h100(0)], driver="535.10.01"))
    assert ended.verdict("driver-branch") is WARN, "it does not come back"
