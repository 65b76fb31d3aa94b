"""Evidence of the machine itself: identity, hardware, kernel, disks, swap, time, left-overs."""

from __future__ import annotations

import ctypes
import errno
import getpass
import glob
import hashlib
import json
import os
import platform
import re
import sys
import time
from typing import Any

try:
    import tomllib
except ImportError:  # Python before 3.11
    tomllib = None  # type: ignore[assignment]

from ansible.module_utils.pai_in_use import cni_files, gpu_containers, gpu_processes, old_shims
from ansible.module_utils.pai_machine import CGROUP_CONTROLLERS, cgroup_version, command, memory_bytes, os_release, read
from ansible.module_utils.pai_managed import STATE_DIR
from ansible.module_utils.pai_probe import active_units, found_program, names_in, number
from ansible.module_utils.pai_quota import kept

DISPLAY_AND_ACCELERATOR = ("0300", "0302", "1200")
TIME_UNITS = ("chrony", "chronyd", "systemd-timesyncd", "ntp", "ntpsec", "ntpd", "openntpd")
DOCKER_PACKAGES = ("docker-ce", "docker-ce-cli", "docker.io", "docker-ee", "moby-engine", "podman-docker")
BESIDE_DOCKER = ("moby-containerd", "nvidia-docker2", "containerd.io", "containerd")
PACKAGES = (*DOCKER_PACKAGES, *BESIDE_DOCKER, "kubelet", "chrony", "haproxy")
KUBERNETES_FILES = (
    "/etc/kubernetes/admin.conf",
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/manifests/*.yaml",
    "/var/lib/kubelet/config.yaml",
)
OTHER_DISTRIBUTIONS = ("/var/lib/rancher/k3s", "/var/lib/rancher/rke2", "/var/snap/microk8s", "/var/lib/k0s")
MAXIMUM_ERROR_US = 16_000_000  # the kernel's limit for an unsynchronised clock
ZRAM = ("/etc/systemd/zram-generator.conf", "/usr/lib/systemd/zram-generator.conf")
ZRAM_UNITS = ("zramswap.service", "zram-config.service", "armbian-zram-config.service")


def identity() -> dict[str, Any]:
    """Returns names and ids. container: name from systemd-detect-virt, empty on a physical or virtual machine."""
    # It ends with 1 on a machine that is no container, and still prints a word.
    container = command(["systemd-detect-virt", "--container"])
    return {
        "hostname": platform.node(),
        "machine_id": read("/etc/machine-id"),
        "product_uuid": read("/sys/class/dmi/id/product_uuid"),
        "container": container[1].strip() if container[0] == 0 else "",
        "user": getpass.getuser(),
        "root": os.geteuid() == 0,
        "python": platform.python_version(),
    }


def system() -> dict[str, Any]:
    """Distribution, architecture, kernel and its limits."""
    known = os_release()
    return {
        "id": known.get("id", ""),
        "version_id": known.get("version_id", ""),
        "name": known.get("pretty_name", ""),
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "pid_max": number(read("/proc/sys/kernel/pid_max")),
        "threads_max": number(read("/proc/sys/kernel/threads-max")),
        "systemd": os.path.isdir("/run/systemd/system"),
    }


def hardware() -> dict[str, Any]:
    """Memory, processors, and the display and accelerator functions on the PCI bus."""
    return {
        "memory_bytes": memory_bytes(),
        "cpus": os.cpu_count(),
        "pci": [device for path in sorted(glob.glob("/sys/bus/pci/devices/*")) for device in pci_device(path)],
        "nvidia_driver": read("/proc/driver/nvidia/version").partition("\n")[0],
        "nouveau": os.path.isdir("/sys/module/nouveau"),
        "secure_boot": secure_boot(),
        "dkms_key_enrolled": dkms_key_enrolled(),
        "headers": headers(),
    }


def secure_boot(sys: str = "/sys") -> bool:
    """Returns whether the kernel loads only signed modules, as `mokutil --sb-state` reports."""
    # The variable has four bytes of attributes before its one byte of value, so a text reader does not fit.
    value = read_bytes(sys + "/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c")
    return len(value) == 5 and value[4] == 1


def dkms_key_enrolled() -> bool:
    """Whether the firmware knows the key by which DKMS signs the modules that it builds."""
    # Debian's DKMS makes its own key. Ubuntu's DKMS signs with the key of shim-signed.
    keys = [path for path in ("/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der") if os.path.exists(path)]
    return any("already enrolled" in command(["mokutil", "--test-key", key])[1] for key in keys)


def headers() -> str:
    """Where the headers of the running kernel are: "installed", "available", or "" when no package source has them."""
    release = platform.release()
    # DKMS builds against this folder. It may exist although apt knows no package, as with a kernel of one's own.
    if os.path.isdir(f"/lib/modules/{release}/build"):
        return "installed"
    output = command(["apt-cache", "policy", f"linux-headers-{release}"])[1]
    candidate = re.search(r"Candidate: (\S+)", output)
    return "available" if candidate and candidate.group(1) != "(none)" else ""


def read_bytes(path: str) -> bytes:
    """Returns the bytes of a file, or b"" if it is unreadable."""
    try:
        with open(path, "rb") as handle:
            return handle.read()
    except OSError:
        return b""


def pci_device(path: str) -> list[dict[str, str]]:
    """One PCI function, if it is a display controller or an accelerator."""
    kind = read(path + "/class")[2:6]
    if kind not in DISPLAY_AND_ACCELERATOR:
        return []
    return [
        {
            "address": os.path.basename(path),
            "vendor": read(path + "/vendor")[2:],
            "revision": read(path + "/revision")[2:],
        }
    ]


def mounts(paths: list[str]) -> list[dict[str, Any]]:
    """The file system that each path is or would be on: its free space and inodes."""
    table = [line.split() for line in read("/proc/self/mounts").splitlines()]
    return [mount_of(path, table) for path in paths]


def mount_of(path: str, table: list[list[str]]) -> dict[str, Any]:
    """The file system of one path, the nearest folder above it where it does not exist."""
    there = existing(path)
    real = os.path.realpath(there)
    above = [row for row in table if real == row[1] or real.startswith(row[1].rstrip("/") + "/")]
    # Mounts may lie in one another. The longest mount point is the one that holds the path.
    row = max(above, key=lambda entry: len(entry[1])) if above else ["", "/", "", ""]
    space = os.statvfs(there)
    return {
        "path": path,
        "mount_point": row[1],
        "device": str(os.stat(there).st_dev),
        "filesystem": row[2],
        "read_only": bool(space.f_flag & os.ST_RDONLY),
        "noexec": bool(space.f_flag & os.ST_NOEXEC),
        "project_quotas": kept(there),
        "total_bytes": space.f_blocks * space.f_frsize,
        # f_bfree would count the blocks that the file system reserves for root.
        "free_bytes": space.f_bavail * space.f_frsize,
        "inodes": space.f_files,
        "inodes_free": space.f_favail,
    }


def existing(path: str) -> str:
    """The path itself, or the nearest folder above it that exists."""
    while not os.path.isdir(path) and path != "/":
        path = os.path.dirname(path)
    return path


def swap() -> dict[str, Any]:
    """Returns active swap, and the entries that activate swap at the next boot."""
    fstab = [line.strip() for line in read("/etc/fstab").splitlines()]
    listed = command(["systemctl", "list-units", "--all", "--plain", "--no-legend", "--type=swap"])[1]
    # A masked unit is how an admin switches swap off permanently, so it activates nothing.
    units = [line.split()[0] for line in listed.splitlines() if line.strip() and " masked " not in line]
    # systemd lists no unit that it has not loaded, but starts an enabled one at the next boot.
    units += [os.path.basename(unit) for unit in glob.glob("/etc/systemd/system/*.wants/*.swap")]
    # Packages bring this file with comments only. A section in it makes a device.
    zram = [path for path in ZRAM if re.search(r"^\s*\[", read(path), re.MULTILINE)][:1]
    return {
        "active": [line.split()[0] for line in read("/proc/swaps").splitlines()[1:]],
        "fstab": [line for line in fstab if not line.startswith("#") and line.split()[2:3] == ["swap"]],
        "units": sorted(set(units)),
        "zram": zram + active_units(ZRAM_UNITS),
    }


def timekeeping() -> dict[str, Any]:
    """Which time services run, and whether the clock is said to be synchronised."""
    tracking = command(["chronyc", "-n", "tracking"])[1]
    leap = re.search(r"^Leap status\s*:\s*(.+)$", tracking, re.MULTILINE)
    return {
        "services": active_units(TIME_UNITS),
        "synchronised": kernel_synchronised(),
        "chrony": leap.group(1).strip() if leap else "",
    }


def kernel_synchronised() -> bool | None:
    """Returns whether the kernel's clock is synchronised, or None if unknown. timedatectl would start a service."""
    # The size is larger than struct timex of any architecture, so the kernel never writes past it.
    record = ctypes.create_string_buffer(512)  # struct timex, all zero: only asks
    # The offset of maxerror below holds for 64 bits only.
    if ctypes.sizeof(ctypes.c_long) != 8 or ctypes.CDLL(None).adjtimex(record) < 0:
        return None
    maximum_error_us = int.from_bytes(record.raw[24:32], sys.byteorder)
    return maximum_error_us < MAXIMUM_ERROR_US


def kernel_modules(wanted: list[str]) -> dict[str, Any]:
    """Splits the wanted kernel modules into available (loaded, built in, or loadable) and missing."""
    folder = f"/lib/modules/{platform.release()}"
    texts = read(folder + "/modules.dep", 1 << 26) + "\n" + read(folder + "/modules.builtin")
    known = {os.path.basename(name).replace("-", "_") for name in re.findall(r"^(\S+?)\.ko", texts, re.MULTILINE)}
    # A built-in module may have no folder in /sys, so the kernel's own lists of modules count, too.
    there = [name for name in wanted if os.path.isdir(f"/sys/module/{name}") or name in known]
    return {
        "there": there,
        "missing": [name for name in wanted if name not in there],
        "tree": os.path.isdir(folder),
        "other_trees": [name for name in names_in("/lib/modules") if name != platform.release()],
    }


def cgroups() -> dict[str, Any]:
    """Version 2 when the unified hierarchy is the only one, and its controllers."""
    # The unified hierarchy lists only controllers that are enabled. /proc/cgroups lists all that the kernel has.
    if cgroup_version() == 2:
        return {"version": 2, "controllers": read(CGROUP_CONTROLLERS).split()}
    rows = [line.split() for line in read("/proc/cgroups").splitlines()[1:]]
    return {"version": 1, "controllers": [row[0] for row in rows if row[3:] == ["1"]]}


def packages() -> dict[str, str]:
    """Installed packages that matter -> version."""
    status = "${Package} ${db:Status-Status} ${Version}\n"
    # dpkg-query ends with 1 if one package is unknown, and still prints the others. So its status does not count.
    listed = command(["dpkg-query", "--show", "--showformat", status, *PACKAGES])[1]
    rows = [line.split() for line in listed.splitlines()]
    return {row[0]: row[2] for row in rows if len(row) == 3 and row[1] == "installed"}


def devices() -> dict[str, Any]:
    """Who has NVIDIA devices open: containers, and processes of any kind. None where only root may see."""
    root = os.geteuid() == 0
    return {
        "gpu_containers": gpu_containers() if root else None,
        "gpu_processes": gpu_processes() if root else None,
    }


def docker_program(*, running: bool, proc: str = "/proc") -> dict[str, Any]:
    """Returns the path of the daemon, preferably of the running process, and its package.

    program: empty if not installed. package: empty for no package, None if dpkg fails.
    """
    # The file on PATH may be newer than, or another one than, the daemon that runs.
    program = (main_program("docker", proc) if running else "") or found_program("dockerd")
    if not program:
        return {"program": "", "package": ""}
    status, output = command(["dpkg", "--search", program])
    owner = output.partition(":")[0].strip() if status == 0 else ""
    return {"program": program, "package": owner if status in (0, 1) else None}


def main_program(unit: str, proc: str) -> str:
    """Returns the program file of a unit's main process, or "" if it does not run or needs root permissions.

    Other processes of this name are ignored, because a container may have its own daemon.
    """
    number_of_process = command(["systemctl", "show", unit, "--property=MainPID"])[1].strip().partition("=")[2]
    try:
        return os.readlink(f"{proc}/{number_of_process}/exe").replace(" (deleted)", "")
    except OSError:
        return ""


def docker() -> dict[str, Any]:
    """Returns the state of Docker. A stopped Docker gets no requests, because they would start it."""
    text = read("/etc/docker/daemon.json")
    found: dict[str, Any] = {"running": bool(active_units(["docker"])), "snap": os.path.isdir("/snap/docker")}
    found.update(docker_program(running=found["running"]))
    try:
        settings = json.loads(text) if text else {}
        found["daemon_json"] = "" if isinstance(settings, dict) else "it is not a mapping"
        settings = settings if isinstance(settings, dict) else {}
        found["data_root"] = str(settings.get("data-root", ""))
        found["cgroup_parent"] = str(settings.get("cgroup-parent", ""))
    except ValueError as error:
        found["daemon_json"] = str(error)
    # A request to docker.socket would start a Docker that its admin has stopped.
    if found["running"]:
        output = command(["docker", "info", "--format", "{{json .}}"])[1]
        info = json.loads(output) if output.strip() else {}
        found["version"] = info.get("ServerVersion") or ""
        found["containers"] = info.get("ContainersRunning")
        found["data_root"] = info.get("DockerRootDir") or found.get("data_root", "")
        # The running daemon counts here, and not its file: a setting without reload has no effect yet.
        found["live_restore"] = info.get("LiveRestoreEnabled")
        found["swarm"] = (info.get("Swarm") or {}).get("LocalNodeState", "inactive") != "inactive"
        if os.geteuid() == 0:
            found["own_parents"] = own_parents(found["data_root"])
    return found


def own_parents(data_root: str) -> dict[str, str]:
    """Returns container -> parent of its control group, if that parent is no systemd slice.

    Needs root permissions to read Docker's files.
    """
    found = {}
    for path in sorted(glob.glob(f"{data_root}/containers/*/hostconfig.json")) if data_root else []:
        try:
            parent = str(json.loads(read(path) or "{}").get("CgroupParent") or "")
        except (ValueError, AttributeError):
            continue
        if parent and not parent.endswith(".slice"):
            found[path.split("/")[-2][:12]] = parent
    return found


def containerd(path: str = "/etc/containerd/config.toml") -> dict[str, Any]:
    """Returns the state of an installed containerd. config: problem of its file. tasks: namespace -> running
    containers.

    old_shims: number of containers that containerd 2 cannot adopt. Namespaces of Docker and Kubernetes are omitted,
    because other checks cover them.
    """
    running = bool(active_units(["containerd"]))
    found: dict[str, Any] = {"running": running, "config": toml_problem(path), "tasks": {}, "old_shims": old_shims()}
    names = command(["ctr", "namespaces", "list", "--quiet"])[1].split() if found["running"] else []
    for name in names:
        count = len(command(["ctr", "--namespace", name, "tasks", "list", "--quiet"])[1].split())
        # Other checks count the containers of Docker and Kubernetes. Nobody else sees those of nerdctl, for example.
        if count and name not in ("moby", "k8s.io"):
            found["tasks"][name] = count
    return found


def toml_problem(path: str) -> str:
    """Returns the TOML error in a file, or "" if it is valid, missing, or this Python has no parser."""
    try:
        with open(path, encoding="utf-8") as handle:
            text = handle.read()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        return str(error)
    try:
        _ = tomllib.loads(text) if tomllib else None
    except ValueError as error:
        return str(error)
    return ""


def kubernetes() -> dict[str, Any]:
    """Returns traces of any cluster. marker: last operation of pai-install, or ""."""
    marker = read(STATE_DIR + "/kubeadm.json")
    try:
        parsed = json.loads(marker) if marker else {}
    except ValueError:
        parsed = {"state": "unreadable", "done": False}
    authority = read("/etc/kubernetes/pki/ca.crt")
    return {
        "marker": parsed,
        "roles": [name[: -len(".json")] for name in names_in(STATE_DIR + "/roles") if name.endswith(".json")],
        "files": [path for pattern in KUBERNETES_FILES for path in sorted(glob.glob(pattern))],
        # A digest is enough to tell two clusters apart, and no certificate goes into the report.
        "authority": hashlib.sha256(authority.encode()).hexdigest()[:16] if authority else "",
        "etcd_entries": len(names_in("/var/lib/etcd")),
        "cni": cni_files(),
        "other": [path for path in OTHER_DISTRIBUTIONS if os.path.isdir(path)],
        "kubelet_running": bool(active_units(["kubelet"])),
    }


def write_latency(folder: str, seconds: float) -> dict[str, Any]:
    """Milliseconds that small synchronous writes take on the disk of a folder, as etcd makes them.

    The file has no name: nothing appears in the folder, and it is gone when it is closed. samples: 0 where the file
    system knows no such files, or is full.
    """
    there = existing(folder)
    try:
        # A slow disk makes etcd lose its leader again and again. Its 99th percentile counts, so samples are kept.
        took = sorted(timed_writes(there, seconds))
    except OSError as error:
        # An old kernel answers O_TMPFILE with EISDIR, and a file system without such files with EOPNOTSUPP.
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.ENOSPC, errno.EROFS):
            return {"folder": there, "samples": 0}
        raise
    at = {"median_ms": len(took) // 2, "p99_ms": int(len(took) * 0.99), "max_ms": len(took) - 1}
    return {"folder": there, "samples": len(took), **{name: round(took[index], 2) for name, index in at.items()}}


def timed_writes(folder: str, seconds: float) -> list[float]:
    """Returns the durations in milliseconds of 1 to 200 writes. No write starts after `seconds`."""
    took: list[float] = []
    descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
    try:
        deadline = time.monotonic() + seconds
        while not took or (time.monotonic() < deadline and len(took) < 200):
            began = time.monotonic()
            # The size and the sync after each write are those of etcd's write-ahead log, as in etcd's advice for fio.
            os.write(descriptor, b"\0" * 2300)
            os.fdatasync(descriptor)
            took.append((time.monotonic() - began) * 1000)
    finally:
        os.close(descriptor)
    return took
