"""Collects the raw evidence of one machine's health and prints it as one JSON document.

Runs on the machine itself with any Python from 3.6 and the standard library alone, and changes nothing.
Every command and every group of files is read in a child with its own time limit, several at a time. A child
that cannot be killed (its driver hangs in the kernel) keeps running and is reported: that is evidence too.
The verdicts are made elsewhere, from this document.
"""

# Annotations that Python 3.6 could not evaluate are strings.
import argparse
import base64
import collections
import errno
import gzip
import hashlib
import json
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

SCHEMA_VERSION = 1
COLLECTOR_VERSION = "1.5"
PARALLEL = 8
DEADLINE_S = 52.0  # leaves time to kill, pack and print within 60 s
# The first answer of a driver that no daemon keeps loaded may take half a minute: slow, but no hang.
DRIVER_TIMEOUT_S = 45.0
KILL_WAIT_S = 2.0
# sudo and an empty environment leave out places where the programs are.
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TOTAL_CUT = 6 * 1024 * 1024
READER_CUT = 700 * 1024  # of each reader's JSON: nine of them stay below TOTAL_CUT, which halves the commands' outputs

# name | seconds | KiB of output kept | command
COMMANDS = r"""
kernel_log | 20 | 1024 | journalctl -k -b -o short-iso --no-pager --since -14d
dmesg | 10 | 1024 | dmesg -T
lspci | 10 | 256 | lspci -Dnn
modinfo_nvidia | 10 | 4 | modinfo -F version nvidia
dkms | 15 | 16 | dkms status
secure_boot | 5 | 4 | mokutil --sb-state
ps | 10 | 1024 | ps axo pid,stat,ppid,etimes,wchan:32,comm
units | 9 | 64 | systemctl show -p Id,LoadState,ActiveState,NRestarts nvidia-fabricmanager
nvidia_units | 10 | 64 | systemctl show -p Id,LoadState,ActiveState nvidia-imex
host_units | 10 | 64 | systemctl show -p Id,LoadState,ActiveState,NRestarts docker docker.socket containerd kubelet
time_units | 10 | 64 | systemctl show -p Id,LoadState,ActiveState chrony chronyd systemd-timesyncd ntp ntpsec
upgrade_units | 10 | 64 | systemctl show -p Id,LoadState,ActiveState unattended-upgrades dnf-automatic.timer
apt_hold | 10 | 32 | apt-mark showhold
dpkg_nvidia | 10 | 64 | dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\n' '*nvidia*'
rpm_nvidia | 15 | 64 | rpm -qa '*nvidia*'
chrony_tracking | 8 | 4 | chronyc -c tracking
timedatectl | 8 | 4 | timedatectl show
docker_info | 15 | 64 | docker info --format '{{json .}}'
containerd_version | 8 | 4 | containerd --version
containerd_config | 10 | 128 | containerd config dump
toolkit_version | 8 | 4 | nvidia-ctk --version
dcgm_health | 25 | 64 | dcgmi health -c -j
smart_scan | 10 | 4 | smartctl --scan
"""
# These wait for the first answer of nvidia-smi: a hung driver must not collect a row of hung processes.
AFTER_DRIVER = """
nvidia_smi_list | 20 | 64 | nvidia-smi -L
nvidia_smi_nvlink | 20 | 256 | nvidia-smi nvlink -s
nvidia_smi_nvlink_errors | 20 | 256 | nvidia-smi nvlink -e
nvidia_smi_p2p | 20 | 64 | nvidia-smi topo -p2p n
nvidia_smi_excluded | 20 | 16 | nvidia-smi -B
nvidia_smi_fields | 10 | 256 | nvidia-smi --help-query-gpu
"""
DRIVER_REFUSED = """
nvidia_smi_text | 20 | 2048 | nvidia-smi -q
nvidia_smi_table | 20 | 64 | nvidia-smi
"""
# A process that works is in state D for moments, and one that ended is in state Z until its parent looks.
# Only one that is found so each time may hang.
LATER_LOOKS = (
    "ps_again | 20 | 3072 | sh -c 'for look in 1 2 3; do sleep 1; ps axo pid,stat,ppid,etimes,wchan:32,comm; done'"
)
# A container with all GPUs, once through each runtime; the image must already be on the machine.
# Asked for by a mount: the runtime need not believe what a container's environment asks for.
ALL_GPUS = "--runtime=nvidia --volume=/dev/null:/var/run/nvidia-container-devices/all"
DEEP = """
docker_gpu | 30 | 16 | docker run --rm --pull=never --network=none {all_gpus} {image} nvidia-smi -L
containerd_gpu | 30 | 16 | ctr -n k8s.io run --rm --device nvidia.com/gpu=all {full} pai-gpu-{pid} nvidia-smi -L
"""
# CSV adds what the XML of some drivers lacks. One unknown field makes nvidia-smi refuse them all, so only
# those that the node's own --help-query-gpu names are asked for.
CSV_FIELDS = """pci.bus_id kmd_version gpu_recovery_action pcie.link.gen.gpucurrent
inforom.checksum_validation ecc.errors.uncorrected.aggregate.sram.thresholdExceeded"""
NODE_COLUMNS = (
    '{range .items[*]}{.metadata.name}{"\\t"}{.spec.unschedulable}{"\\t"}{.status.capacity}{"\\t"}'
    '{.status.allocatable}{"\\t"}{range .status.conditions[?(@.type=="Ready")]}{.status}{end}{"\\n"}{end}'
)
# words, one of which is in the line | what else must fit. The kinds of kernel lines that a check may ask for; a line is
# of the first that fits. Of each kind the newest lines are kept, so that a storm of one does not push out another. What
# else the drivers of GPUs and network cards say (assertions, crash dumps) no check understands, and it stays there.
# Words come first because a regular expression over every line of a long log would take longer than there is time.
KERNEL_TABLE = r"""
RmInitAdapter;rm_init_adapter;NVIDIA probe;No NVIDIA;None of the NVIDIA;NVIDIA device is invalid;power cables |
No firmware image | NVRM
NVRM: nouveau;already bound |
PostRxDet |
probably locked |
BUG: ;Oops;kernel BUG;general protection fault;divide error: ;Kernel panic;Kernel stack is corrupted |
health compromised;health recovery;atal error;atal assert;irmware internal;irmware fatal;error state | mlx5
device is in error;unrecoverable | mlx5
event[error];insufficient power;High temperature | mlx5
probe of;init_one;load_one;function_setup | mlx5_core.*failed
Bus Error:;AER:;DPC: | (?:Bus Error|AER):.*(?:Uncorrect|[Ff]atal|can't recover)|DPC: .*(?:containment|uncorrectable)
EDAC | EDAC .*\bCE\b
mce: ;achine check;achine Check;Hardware Error;EDAC | achine [Cc]heck|Hardware Error|mce: .*rror|EDAC .*\bUE\b
Out of memory;oom-kill |
blocked for more than;soft lockup;hard LOCKUP;detected stall;unregister_netdevice: |
EXT4-fs error;emounting;JBD2: |
nfs: server | (?:not responding|OK)
XFS ;BTRFS | (?:XFS|BTRFS)\b.*(?:rror|orrupt|hut|csum failed)
I/O error;critical medium error | dev(?:ice)? (?!fd|sr|loop)
controller is down;Removing after probe | nvme
fault_state(;in FAULT;ontroller lockup | mpt\dsas|megaraid|hpsa
ost carrier;ink down;ink Down;ink DOWN;ink is down;ink is Down;ink is DOWN | ^(?!.*(?:NVRM|nvidia|pciehp|\bata\d))
NETDEV WATCHDOG;PCIe link lost;tx_timeout: |
limited by |
module verification;Key was rejected | nvidia
fallen off the bus;NVRM: The NVIDIA GPU |
Xid | S?Xid \(
"""
KERNEL_KINDS = [
    ([word.encode() for word in words.strip().split(";")], re.compile(pattern.strip()))
    for words, _, pattern in (line.partition(" |") for line in KERNEL_TABLE.strip().splitlines())
]
# Xids are kept by GPU and number: a thousand faults of an application do not push out the one of the hardware.
XID = re.compile(r"Xid \(([^)]*)\).*?: (\d+)")
LINES_OF_A_KIND = 400
LINE_CUT = 600
HOST_FILES = """/proc/meminfo /proc/swaps /proc/mounts /proc/modules /proc/mdstat
/etc/os-release /sys/fs/cgroup/cgroup.controllers /sys/devices/system/edac/mc/mc*/[cu]e_count
/sys/class/net/*/carrier_changes /sys/class/net/*/operstate /sys/class/net/*/master/ifindex
/sys/class/net/*/device/vendor /var/run/cdi/* /etc/cdi/*
/var/lib/kubelet/config.yaml /run/systemd/container"""
DRIVER_FILES = "/proc/driver/nvidia/version /proc/driver/nvidia/gpus/*/information"
PCI_NAMES = "vendor class numa_node max_link_width iommu_group/type aer_dev_correctable aer_dev_nonfatal aer_dev_fatal"
FABRIC_NAMES = """fw_ver board_id device/net/*/operstate ports/*/state ports/*/phys_state ports/*/rate
ports/*/link_layer ports/*/counters/* ports/*/hw_counters/*"""
MOUNTS = "/ /var /var/log /var/lib/kubelet /var/lib/containerd /var/lib/docker /tmp"
NVML_FOLDERS = "usr/lib usr/lib64 usr/lib/x86_64-linux-gnu usr/lib/aarch64-linux-gnu"
# An identifier has a digit: N/A, "GPU is lost" and other words of the driver stay, because they are evidence.
IDENTIFIER = r"((?=[^\s<\"]*\d)[0-9A-Za-z_:.-]{4,})"
SECRETS = (
    re.compile(r"\b((?:GPU|MIG)-)([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"),
    re.compile(r"(<(?:serial|chassis_serial_number|pdi|gpu_fabric_guid|clusterUuid)>)" + IDENTIFIER),
    re.compile(r"((?:Serial Number|Serial|PDI|GPU Fabric GUID|ClusterUUID|GPU UUID) *: +)" + IDENTIFIER),
    re.compile(r'("(?:ID|Unique ID|serial_number)" *: *")' + IDENTIFIER),
)
# World wide names of disks are objects of numbers in smartctl's JSON.
DISK_NAMES = re.compile(r'("(?:wwn|eui64|nguid)"\s*:\s*)(\{[^{}]*\}|"[^"]*")')
# Passwords and tokens of registries and proxies are no evidence: they never leave the machine.
MASK = "masked"
CREDENTIAL_WORDS = ("passw", "token", "secret", "key", "auth")
CREDENTIAL_VALUE = r"""("(?:[^"\\\n]|\\.)+"|'[^'\n]+'|[^\s"'\[\]{},]+)"""
CREDENTIALS = re.compile(
    r"""((?<![\w.-])["']?(?:[\w.-]*(?:passw(?:or)?d|token|secret|secret_?key|access_?key|api_?key|private_?key)"""
    r"""|auth|authorization|x-registry-auth)["']?[ \t]*[=:][ \t]*\[?[ \t]*)""" + CREDENTIAL_VALUE,
    re.IGNORECASE,
)
URL_CREDENTIALS = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/@\"']+@")


class LogLines:
    """The lines of a kernel log that a check may ask for, filtered while they come: the newest of each kind."""

    def __init__(self) -> None:
        self.lines, self.dropped, self._rest = 0, 0, b""
        self._kinds = {}  # type: dict[object, collections.deque[tuple[int, str]]]

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of the log."""
        *whole, rest = (self._rest + data).split(b"\n")
        # A line without an end must not fill the memory.
        self._rest = rest[-65536:]
        self._take(whole)

    def text(self) -> str:
        """Returns the kept lines in the order of the log."""
        self._take([self._rest])
        self._rest = b""
        return "\n".join(line for _, line in sorted(row for kind in self._kinds.values() for row in kind))

    def _take(self, lines: "list[bytes]") -> None:
        block = b"\n".join(lines)
        # One search in the whole block is cheaper than one in each of its lines.
        present = [(n, words, fits) for n, (words, fits) in enumerate(KERNEL_KINDS) if any(w in block for w in words)]
        for line in lines:
            if not line or line.startswith(b"-- "):  # journalctl's own words: -- No entries --
                continue
            self.lines += 1
            for number, words, fits in present:
                if any(word in line for word in words) and self._keep(number, line, fits):
                    break

    def _keep(self, number: int, line: bytes, fits: "re.Pattern[str]") -> bool:
        text = line.decode("utf-8", "replace")
        if not fits.search(text):
            return False
        xid = XID.search(text)
        kind = xid.groups() if xid else number  # type: object
        rows = self._kinds.setdefault(kind, collections.deque(maxlen=LINES_OF_A_KIND))
        self.dropped += len(rows) == LINES_OF_A_KIND
        rows.append((self.lines, text[:LINE_CUT]))
        return True


class Errand:
    """One child process: a command, or a function of this file that a fork runs and that returns JSON."""

    def __init__(self, name: str, work: "object", timeout: float, cut: int) -> None:
        self.name, self.work, self.timeout, self.cut = name, work, float(timeout), cut
        self.argv = [str(word) for word in work] if isinstance(work, list) else []
        self.pid, self.started, self.ended, self.truncated = 0, 0.0, 0.0, False
        self.buffers = {"stdout": bytearray(), "stderr": bytearray()}
        self.log = LogLines() if name in ("kernel_log", "dmesg") else None
        self.open = set()  # type: set[int]
        self.result = {"argv": self.argv}  # type: dict[str, object]

    def start(self, selector: "selectors.BaseSelector") -> bool:
        """Starts the child. Returns False if the program is missing or cannot start, which is evidence too."""
        self.started = time.monotonic()
        try:
            return self._start(selector)
        except OSError as error:
            why = error.strerror or type(error).__name__
            no_more = error.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
            self.result.update(refused=why, exhausted=no_more, rc=None, stdout="", stderr="")
            return False

    def _start(self, selector: "selectors.BaseSelector") -> bool:
        if not self.argv:
            self._fork(selector)
            return True
        if shutil.which(self.argv[0]) is None:
            self.result.update(missing=True, rc=None, stdout="", stderr="")
            return False
        self._run(selector)
        return True

    def _run(self, selector: "selectors.BaseSelector") -> None:
        """Starts the program. Raises OSError when the kernel does not: no process left, another architecture ..."""
        pipes = {}  # type: dict[str, tuple[int, int]]
        try:
            for name in self.buffers:
                pipes[name] = os.pipe()
            child = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=pipes["stdout"][1],
                stderr=pipes["stderr"][1],
                start_new_session=True,
                # In another language, programs print other words and other decimal signs.
                env=dict(os.environ, LC_ALL="C", LANG="C", SYSTEMD_COLORS="0"),
            )
        except OSError:
            for descriptors in pipes.values():
                for descriptor in descriptors:
                    os.close(descriptor)
            raise
        self.pid = child.pid
        child.returncode = 0  # reaped here, not by Popen, which would block on a process that cannot die
        for name, (reader, writer) in pipes.items():
            os.close(writer)
            self._watch(selector, reader, name)

    def _fork(self, selector: "selectors.BaseSelector") -> None:
        reader, writer = os.pipe()
        try:
            self.pid = os.fork()
        except OSError:
            os.close(reader)
            os.close(writer)
            raise
        if self.pid == 0:
            # Whatever happens, the fork must not return into the code of its parent.
            try:
                # With a session of its own, a kill also reaches the children of the child.
                os.setsid()
                null = os.open(os.devnull, os.O_RDWR)
                for descriptor in (0, 1, 2):  # whoever reads our output must not wait for a hung child
                    os.dup2(null, descriptor)
                with os.fdopen(writer, "wb") as pipe:
                    pipe.write(json.dumps(self.work()).encode())  # type: ignore[operator]
                os._exit(0)
            finally:
                os._exit(1)
        os.close(writer)
        self._watch(selector, reader, "stdout")

    def _watch(self, selector: "selectors.BaseSelector", descriptor: int, name: str) -> None:
        os.set_blocking(descriptor, False)
        self.open.add(descriptor)
        selector.register(descriptor, selectors.EVENT_READ, (self, name))

    def read(self, selector: "selectors.BaseSelector", descriptor: int, name: str) -> None:
        """Reads output of the child, and discards it beyond the size limit."""
        data = os.read(descriptor, 65536)
        if not data:
            self.close(selector, descriptor)
            return
        if self.log is not None and name == "stdout":
            self.log.feed(data)
            return
        room = self.cut - len(self.buffers[name])
        self.buffers[name] += data[: max(room, 0)]
        self.truncated = self.truncated or len(data) > room

    def close(self, selector: "selectors.BaseSelector", descriptor: int) -> None:
        """Stops reading one of the child's streams."""
        selector.unregister(descriptor)
        os.close(descriptor)
        self.open.discard(descriptor)

    def reap(self) -> bool:
        """Returns whether the child has ended, and stores its status in the result."""
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid:
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
            self.result.setdefault("rc", code)
            self.ended = time.monotonic()
        return bool(pid)

    def kill(self, wait: float) -> None:
        """Kills a child after its timeout, and records it if the child survives `wait` seconds."""
        if self.reap():
            return
        self.result.update(rc=None, timed_out=True, state=process_state(self.pid))
        # The place in the kernel where a child waits is the best hint why it cannot be killed.
        self.result["wchan"] = read_text(f"/proc/{self.pid}/wchan")
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.pid, number)
            except (ProcessLookupError, PermissionError):
                return
            until = time.monotonic() + wait / 2
            while time.monotonic() < until:
                if self.reap():
                    return
                time.sleep(0.02)
        self.result.update(unkillable=True, state=process_state(self.pid) or self.result["state"])

    def finish(self, selector: "selectors.BaseSelector") -> None:
        """Closes the streams and writes the result down."""
        for descriptor in list(self.open):
            self.close(selector, descriptor)
        self.result["duration_s"] = round(time.monotonic() - self.started, 3)
        self.result.update((name, bytes(data).decode("utf-8", "replace")) for name, data in self.buffers.items())
        if self.log is not None:
            text = self.log.text()
            self.truncated = self.truncated or len(text) > self.cut
            self.result.update(stdout=text[-self.cut :], lines=self.log.lines, dropped=self.log.dropped)
        if self.truncated:
            self.result["truncated"] = True


def run_jobs(queue: "list[Errand]", deadline: float, then: "object") -> "dict[str, Errand]":
    """Runs jobs, PARALLEL at a time, until `deadline`. `then(job)` returns the next jobs."""
    selector = selectors.DefaultSelector()
    running, done = [], {}  # type: list[Errand], dict[str, Errand]
    while queue or running:
        while queue and (len(running) < PARALLEL or time.monotonic() >= deadline):
            job = queue.pop(0)
            done[job.name] = job
            if time.monotonic() >= deadline:
                job.result.update(rc=None, not_started=True, stdout="", stderr="")
            elif job.start(selector):
                running.append(job)
        for key, _ in selector.select(0.05) if selector.get_map() else ():
            owner, name = key.data
            owner.read(selector, key.fd, name)
        # Without an open stream, select returns at once, and this loop would occupy a processor.
        if running and not selector.get_map():
            time.sleep(0.01)
        for job in list(running):
            now = time.monotonic()
            late = now > min(job.started + job.timeout, deadline)
            if late:
                # at the deadline many may have to be killed, one after the other
                job.kill(KILL_WAIT_S if now <= deadline else KILL_WAIT_S / PARALLEL)
            # Something that the child started may hold its output open without end: one more second, then go on.
            if late or (job.reap() and (not job.open or now > job.ended + 1)):
                job.finish(selector)
                running.remove(job)
                queue.extend(then(job))  # type: ignore[operator]
    return done


def read_text(path: "str | Path", limit: int = 65536) -> str:
    """The start of a file, or '' where it cannot be read."""
    try:
        with Path(path).open("rb") as handle:
            return handle.read(limit).decode("utf-8", "replace").strip("\n")
    except (OSError, ValueError):
        return ""


def process_state(pid: int) -> str:
    """R, S, D, Z ... of a process, or ''."""
    return read_text(f"/proc/{pid}/stat").rpartition(")")[2].strip()[:1]


def read_files(patterns: str, base: str = "") -> "dict[str, str]":
    """Path -> content of every readable file that matches one of the patterns (at most 4,000 each)."""
    found = {}
    for pattern in patterns.split():
        for path in sorted(Path("/").glob((base + pattern).lstrip("/")))[:4000]:
            if path.is_file():
                found[str(path)] = read_text(path)
    return found


def read_driver() -> "dict[str, str]":
    """Returns the files of the loaded driver in /proc, and its device nodes."""
    files = read_files(DRIVER_FILES)
    files.update((str(path), "device") for path in Path("/dev").glob("nvidia*") if not path.is_dir())
    return files


def read_pci() -> "dict[str, str]":
    """Link, NUMA, IOMMU and error counters of NVIDIA devices, the port above each, ACS of the switches above it."""
    found = {}  # type: dict[str, str]
    for device in sorted(Path("/sys/bus/pci/devices").glob("*")):
        if read_text(device / "vendor") != "0x10de":
            continue
        found.update((f"{device}/{name}", read_text(device / name)) for name in PCI_NAMES.split())
        # live: a device that has fallen off the bus answers ff to everything
        found[f"{device}/config"] = read_bytes(device / "config")[:4].hex()
        port = device.resolve().parent
        found[f"{device}/upstream/max_link_width"] = read_text(port / "max_link_width")
        found[f"{device}/upstream/acs"] = "\n".join(read_acs(device.resolve())) or "none"
    return {path: text for path, text in found.items() if text}


def read_acs(device: "Path") -> "list[str]":
    """ "BUS_ID 0x1d" for each port of a PCIe switch above a device: its ACS control register, "?" where unreadable."""
    found = []
    for port in device.parents:
        if not re.match(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$", port.name):
            break
        control = acs_control(read_bytes(port / "config"))
        if control:
            found.append(f"{port.name} {control}")
    return found


def read_bytes(path: "Path") -> bytes:
    """The content of a PCI configuration space, b'' where it cannot be read."""
    try:
        return path.read_bytes()[:4096]
    except OSError:
        return b""


def acs_control(config: bytes) -> str:
    """Returns the ACS control register of a switch's downstream port in hex. "?" without root permissions, '' for
    others.
    """
    place, kind = config[0x34] if len(config) > 0x40 else 0, 0
    # A damaged configuration space may lead in a circle, so the number of steps is limited.
    for _ in range(48):  # the list of capabilities
        if not 0x40 <= place < len(config) - 3:
            break
        if config[place] == 0x10:  # PCI Express
            kind = config[place + 2] >> 4
        place = config[place + 1]
    if kind != 6:  # a downstream port of a switch
        return ""
    if len(config) < 4096:
        return "?"
    place = 0x100
    for _ in range(96):  # the list of extended capabilities
        head = int.from_bytes(config[place : place + 4], "little")
        if head & 0xFFFF == 0x0D:
            return hex(int.from_bytes(config[place + 6 : place + 8], "little"))
        place = head >> 20
        if not 0x100 <= place <= 4088:
            break
    return ""


def read_disks() -> "dict[str, list[int]]":
    """Mount point -> bytes total, bytes available, inodes total, inodes available."""
    found = {}
    for mount in MOUNTS.split():
        try:
            stat = os.statvfs(mount)
        except OSError:
            continue
        found[mount] = [
            stat.f_blocks * stat.f_frsize,
            stat.f_bavail * stat.f_frsize,
            stat.f_files,
            stat.f_favail,
        ]
    return found


def read_logs() -> "dict[str, str]":
    """The last 256 KiB of the fabric manager's log."""
    path = Path("/var/log/fabricmanager.log")
    try:
        with path.open("rb") as handle:
            handle.seek(max(0, os.fstat(handle.fileno()).st_size - 262144))
            return {str(path): handle.read(262144).decode("utf-8", "replace")}
    except OSError:
        return {}


def read_kernel() -> "dict[str, object]":
    """Release, processors, headers for the running kernel, and which NVML libraries are installed."""
    release = os.uname().release
    libraries = [path for name in NVML_FOLDERS.split() for path in Path("/", name).glob("libnvidia-ml.so.*")]
    return {
        "release": release,
        "cpus": os.cpu_count(),
        "headers": (Path("/lib/modules") / release / "build").exists(),
        "nvml": sorted({path.resolve().name for path in libraries}),
        "runfile": Path("/usr/bin/nvidia-uninstall").exists(),
    }


# Content of files_* goes into `files` of the document, that of the others into `facts`.
READERS = (
    ("files_host", lambda: read_files(HOST_FILES)),
    ("files_pci", read_pci),
    ("files_driver", read_driver),
    ("files_infiniband", lambda: read_files(FABRIC_NAMES, "/sys/class/infiniband/*/")),
    ("files_logs", read_logs),
    ("disks", read_disks),
    ("kernel", read_kernel),
)


def read_gpu_processes(pids: "list[str]") -> "dict[str, dict[str, str]]":
    """Process id -> name and control group, of the processes that use a GPU."""
    folders = {pid: Path("/proc") / pid for pid in pids}
    return {
        pid: {"name": read_text(folder / "comm"), "cgroup": read_text(folder / "cgroup")}
        for pid, folder in folders.items()
    }


def table_jobs(table: str) -> "list[Errand]":
    """The jobs of one of the tables above."""
    rows = [[cell.strip() for cell in line.split("|", 3)] for line in table.strip().splitlines()]
    return [Errand(name, shlex.split(argv), float(limit), int(kib) * 1024) for name, limit, kib, argv in rows]


def first_jobs(driver_timeout: float) -> "list[Errand]":
    """Returns the jobs without dependencies, the slow driver queries first."""
    jobs = [Errand("nvidia_smi_xml", ["nvidia-smi", "-q", "-x"], driver_timeout, 3 << 20)]
    jobs += [Errand(name, work, 15, READER_CUT) for name, work in READERS]
    jobs += table_jobs(COMMANDS)
    config = "/etc/kubernetes/admin.conf"
    if Path(config).exists():
        command = ["kubectl", "--kubeconfig", config, "--request-timeout=10s", "get", "nodes"]
        jobs.append(Errand("kubernetes_nodes", [*command, "-o", "jsonpath=" + NODE_COLUMNS], 15, 3 << 20))
    return jobs


def next_jobs(job: "Errand", deep_image: str) -> "list[Errand]":
    """The jobs that need the answer of another."""
    output = str(job.result.get("stdout", ""))
    if job.name == "nvidia_smi_xml" and not job.result.get("timed_out"):
        jobs = table_jobs(AFTER_DRIVER)
        if job.result.get("rc") != 0:
            jobs += table_jobs(DRIVER_REFUSED)
        if deep_image:
            names = {"image": shlex.quote(deep_image), "full": shlex.quote(full_name(deep_image))}
            jobs += table_jobs(DEEP.format(pid=os.getpid(), all_gpus=ALL_GPUS, **names))
        pids = sorted(set(re.findall(r"<pid>(\d+)</pid>", output)))[:500]
        return [*jobs, Errand("gpu_processes", lambda: read_gpu_processes(pids), 10, 1 << 20)]
    if job.name == "ps" and re.search(r"^\s*\d+\s+[DZ]", output, re.MULTILINE):
        return table_jobs(LATER_LOOKS)
    if job.name == "nvidia_smi_fields" and job.result.get("rc") == 0:
        fields = ",".join(field for field in CSV_FIELDS.split() if f'"{field}"' in output)
        command = ["nvidia-smi", "--query-gpu=" + fields, "--format=csv"]
        return [Errand("nvidia_smi_csv", command, 20, 65536)] if fields else []
    if job.name == "smart_scan" and job.result.get("rc") == 0:
        disks = [line.split()[0] for line in output.splitlines() if line.startswith("/dev/")]
        return [Errand("smart:" + disk, ["smartctl", "-j", "-H", "-A", disk], 10, 65536) for disk in disks[:24]]
    return []


def full_name(image: str) -> str:
    """An image's name as ctr wants it: with registry and tag, which Docker adds by itself."""
    first, slash, _ = image.partition("/")
    if not slash:
        image = "docker.io/library/" + image
    elif "." not in first and ":" not in first and first != "localhost":
        image = "docker.io/" + image
    return image if "@" in image or ":" in image.rpartition("/")[2] else image + ":latest"


def mask(value: "object") -> "object":
    """The same document without passwords, tokens and other credentials."""
    if isinstance(value, dict):
        return {key: mask(item) for key, item in value.items()}
    if isinstance(value, list):
        return [mask(item) for item in value]
    if not isinstance(value, str):
        return value
    if not any(word in value.lower() for word in CREDENTIAL_WORDS):  # most of what is collected, and the longest
        return URL_CREDENTIALS.sub(r"\1" + MASK + "@", value)

    def hidden(match: "re.Match[str]") -> str:
        name, kept = match.groups()
        if kept.lower() in ("null", "true", "false"):
            return match.group(0)
        # a bare word behind a name in quotes is JSON, and has to stay that
        quote = kept[0] if kept[0] in "\"'" else '"' if re.search(r'"\s*:\s*\[?\s*$', name) else ""
        return name + quote + MASK + quote

    return URL_CREDENTIALS.sub(r"\1" + MASK + "@", CREDENTIALS.sub(hidden, value))


def redact(value: "object") -> "object":
    """Returns the document with pseudonyms for serials and UUIDs. A value has the same pseudonym in every run."""
    if isinstance(value, dict):
        return {key: redact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [redact(item) for item in value]
    if not isinstance(value, str):
        return value

    def pseudonym(match: "re.Match[str]") -> str:
        return match.group(1) + "redacted-" + hashlib.sha256(match.group(2).encode()).hexdigest()[:12]

    def disk_name(match: "re.Match[str]") -> str:
        return match.group(1) + '"redacted-' + hashlib.sha256(match.group(2).encode()).hexdigest()[:12] + '"'

    for pattern in SECRETS:
        value = pattern.sub(pseudonym, value)
    return DISK_NAMES.sub(disk_name, value)


def collect(options: "argparse.Namespace") -> "dict[str, object]":
    """Returns the evidence document. docs/health.md describes its form."""
    start = time.monotonic()
    jobs = first_jobs(options.driver_timeout)
    done = run_jobs(jobs, start + options.deadline, lambda job: next_jobs(job, options.deep_image))
    commands, facts, files = {}, {}, {}  # type: dict[str, object], dict[str, object], dict[str, object]
    for name, job in done.items():
        result = job.result
        if job.argv:
            commands[name] = result
            continue
        # JSON that was cut cannot be read. The part counts as not collected then.
        read = result.get("rc") == 0 and not job.truncated
        content = json.loads(str(result["stdout"])) if read else {}
        if name.startswith("files_"):
            files.update(content)
        facts[name] = {"ok": read, "value": {} if name.startswith("files_") else content}
        facts[name].update((k, v) for k, v in result.items() if k not in ("argv", "stdout"))  # type: ignore[attr-defined]
    times = os.times()
    return {
        "schema_version": SCHEMA_VERSION,
        "collector_version": COLLECTOR_VERSION,
        "hostname": os.uname().nodename,
        "collected_at": round(time.time(), 3),
        "boot_id": read_text("/proc/sys/kernel/random/boot_id"),
        "uptime_s": float((read_text("/proc/uptime") or "0").split()[0]),
        "euid": os.geteuid(),
        "duration_s": round(time.monotonic() - start, 3),
        "cpu_s": round(times.user + times.system + times.children_user + times.children_system, 3),
        "redacted": options.redact,
        "commands": commands,
        "facts": facts,
        "files": files,
    }


def shrink(document: "dict[str, object]") -> None:
    """Keeps the document below TOTAL_CUT by halving the largest streams, as they are in JSON."""
    results = list(document["commands"].values())  # type: ignore[attr-defined]
    sizes = {
        (number, name): len(json.dumps(result.get(name, "")))
        for number, result in enumerate(results)
        for name in ("stdout", "stderr")
    }
    excess = len(json.dumps(document)) - TOTAL_CUT
    while excess > 0 and max(sizes.values(), default=2) > 2:
        number, name = max(sizes, key=lambda key: sizes[key])
        result, before = results[number], sizes[number, name]
        kept = len(result[name]) // 2
        # a log's newest lines are its last
        half = result[name][len(result[name]) - kept :] if "lines" in result else result[name][:kept]
        result.update({name: half, "truncated": True})
        sizes[number, name] = len(json.dumps(half))
        excess -= before - sizes[number, name]


def main() -> None:
    """Prints the evidence and exits with 0: commands that fail are evidence."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--redact", action="store_true", help="replace serial numbers and UUIDs by pseudonyms")
    parser.add_argument("--packed", action="store_true", help="print base64 of gzip instead of JSON")
    parser.add_argument("--deep-image", default="", help="also run this image with all GPUs in each runtime")
    parser.add_argument("--driver-timeout", type=float, default=DRIVER_TIMEOUT_S, help="seconds for nvidia-smi")
    parser.add_argument("--path", default=SEARCH_PATH, help="where else than in PATH programs are looked for")
    parser.add_argument("--deadline", type=float, default=DEADLINE_S, help="seconds for everything")
    options = parser.parse_args()
    os.environ["PATH"] = ":".join(part for part in (os.environ.get("PATH"), options.path) if part)
    document = mask(collect(options))
    shrink(document)  # type: ignore[arg-type]
    text = json.dumps(redact(document) if options.redact else document, sort_keys=True)
    if options.packed:
        text = base64.b64encode(gzip.compress(text.encode(), 6)).decode()
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    os._exit(0)  # not sys.exit: nothing may wait for a child that cannot die


if __name__ == "__main__":
    main()
