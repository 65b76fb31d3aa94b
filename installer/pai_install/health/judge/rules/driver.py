"""The driver: does it answer, is it one version everywhere, will it survive the next reboot and upgrade."""

from __future__ import annotations

import re

from pai_install.checks.evidence import NotObservedError
from pai_install.checks.result import Result, failed, passed, skipped, unknown, warned
from pai_install.checks.verdict import Action, Verdict
from pai_install.health.evidence.document import CommandResult
from pai_install.health.evidence.parse.host import parse_modules, parse_units
from pai_install.health.evidence.parse.kernel_log import LogKind
from pai_install.health.evidence.products import products
from pai_install.health.judge.check import machine_check
from pai_install.health.judge.view import MachineView
from pai_install.system.plain import one_line

# nvidia-smi's exit status -> what it means, what to do.
STATUS = {
    2: ("nvidia-smi does not know its own arguments", Action.CONFIG),
    3: ("the operation is not available on this device", Action.CONFIG),
    4: ("no permission to talk to the driver", Action.CONFIG),
    6: ("a GPU cannot be found or is lost", Action.REBOOT),
    8: ("external power cables are not connected", Action.CONFIG),
    9: ("the driver is not loaded", Action.REBOOT),
    10: ("an interrupt problem with a GPU", Action.REBOOT),
    12: ("the NVML library is missing", Action.CONFIG),
    13: ("the NVML library is older than nvidia-smi", Action.CONFIG),
    14: ("an infoROM is corrupted", Action.RMA),
    15: ("a GPU has fallen off the bus", Action.REBOOT),
    255: ("nvidia-smi failed", Action.REBOOT),
}
# the first Linux whose DMA-BUF the open kernel module of NVIDIA gives to network cards
_DMA_BUF = (5, 12)
_VERSION = re.compile(r"\b(\d{3}\.\d+(?:\.\d+)?)\b")


@machine_check(
    id="driver-responds",
    title="nvidia-smi answers in time",
    reads="nvidia-smi -q -x",
    rule="FAIL when it hangs. WARN above driver-slow-seconds",
    limits=("driver-slow-seconds",),
    source="NVS, PAI",
    remedy="stop the jobs of the machine and reboot it. Power it off and on if it hangs again",
    action=Action.REBOOT,
    gpus_only=True,
)
def responds(machine: MachineView) -> Result:
    result = machine.result("nvidia_smi_xml")
    if result is None or result.not_started:
        return unknown("nvidia-smi did not run, or timed out")
    if result.missing:
        remedy = "install the NVIDIA driver, or remove the NVIDIA GPUs of this machine from the layout"
        return failed("nvidia-smi is not installed", "missing", "installed", action=Action.CONFIG, remedy=remedy)
    if result.refused:
        return _not_started(result)
    if result.timed_out:
        return _hangs(result)
    slow = machine.limit("driver-slow-seconds")
    value, expected = f"{result.duration_s:.1f} s", f"<= {slow:.0f} s"
    return warned("nvidia-smi answers slowly", value, expected) if result.duration_s > slow else passed(value, expected)


def _not_started(result: CommandResult) -> Result:
    """The kernel does not run nvidia-smi: it is the wrong one, or the machine can start nothing (host-evidence)."""
    message = f"nvidia-smi cannot be started: {result.refused}"
    if result.exhausted:
        return unknown(message)
    remedy = "reinstall the driver's packages for this machine's architecture and distribution"
    return failed(message, result.refused, "an answer", action=Action.CONFIG, remedy=remedy)


def _hangs(result: CommandResult) -> Result:
    stuck = f", in state {result.state}" + (f" at {result.wchan}" if result.wchan not in ("", "0") else "")
    after = " and could not be killed" if result.unkillable else ""
    value = f"{result.duration_s:.0f} s{stuck}"
    return failed(f"the driver hangs: nvidia-smi does not answer{after}", value, "an answer")


@machine_check(
    id="driver-status",
    title="nvidia-smi succeeds",
    reads="exit status and messages of nvidia-smi -q -x",
    rule="FAIL for an exit status other than 0, or no readable GPU on a machine with GPUs",
    source="NHC, GPU Operator",
    remedy="follow the message",
    action=Action.REBOOT,
    gpus_only=True,
)
def exit_status(machine: MachineView) -> Result:
    result = machine.result("nvidia_smi_xml")
    if result is None or result.missing or result.rc is None:
        return unknown("nvidia-smi has no exit status")
    if any("Driver/library version mismatch" in stream for stream in (result.stderr, result.stdout)):
        return _mismatch(machine, f"status {result.rc}")
    if result.rc != 0:
        meaning, action = STATUS.get(result.rc, ("nvidia-smi failed", Action.REBOOT))
        detail = next((line for line in (result.stderr + "\n" + result.stdout).splitlines() if line.strip()), "")
        return failed(f"{meaning}: {detail[:160]}", f"status {result.rc}", "0", action=action)
    if result.stdout.rfind("</nvidia_smi_log>") >= 0:  # it is at the end of a long text
        return passed(0, 0)
    if machine.expected.nvidia and not machine.gpus:
        return failed("nvidia-smi succeeded but showed no readable GPU", one_line(result.stdout)[:80], "an answer")
    return unknown("nvidia-smi succeeded but its output is incomplete")


def _mismatch(machine: MachineView, value: str) -> Result:
    """A reboot loads the module on the disk. It helps only if that is another one than the loaded module."""
    try:
        loaded = _VERSION.search(machine.file("/proc/driver/nvidia/version"))
    except NotObservedError:
        loaded = None
    on_disk = machine.output("modinfo_nvidia").strip() if machine.available("modinfo_nvidia") else ""
    if loaded and loaded.group(1) == on_disk:
        message = "the installed library has another version than the module that is loaded and on disk"
        remedy = f"install the library of version {on_disk}, and remove the other one. A reboot changes nothing"
        return failed(message, value, "0", action=Action.CONFIG, remedy=remedy)
    return failed(
        "the loaded driver and the installed library differ: the driver was upgraded while jobs ran",
        value,
        "0",
        action=Action.REBOOT,
        remedy="reload the nvidia modules or reboot, and then hold the driver's packages",
    )


@machine_check(
    id="driver-versions",
    title="Module, library, and disk have the same driver version",
    reads="/proc/driver/nvidia/version, nvidia-smi, modinfo, libnvidia-ml.so.*",
    rule="FAIL when they differ",
    source="own",
    remedy="reboot. If they still differ, remove all driver packages and install one version",
    action=Action.REBOOT,
    gpus_only=True,
)
def one_version(machine: MachineView) -> Result:
    report = machine.smi
    versions = {"running (nvidia-smi)": report.driver_version}
    loaded = _VERSION.search(machine.file("/proc/driver/nvidia/version"))
    versions["loaded module"] = loaded.group(1) if loaded else ""
    versions["module on disk"] = machine.output("modinfo_nvidia").strip()
    kernel = machine.fact("kernel")
    libraries = kernel.get("nvml", []) if isinstance(kernel, dict) else []
    installed = sorted({match.group(1) for name in libraries if (match := re.search(r"\.so\.(\d{3}\.[\d.]+)$", name))})
    versions["library"] = ", ".join(installed)
    shown = ", ".join(f"{name} {version or '?'}" for name, version in versions.items())
    stated = {version for version in versions.values() if version}
    if len(installed) > 1:
        return failed("two driver installations are mixed", shown, "one version")
    if len(stated) > 1:
        return failed("the driver's parts have different versions", shown, "one version")
    if isinstance(kernel, dict) and kernel.get("runfile") and _driver_packages(machine):
        both = "packages of the driver, and NVIDIA's own installer was run as well: the next upgrade mixes them"
        return warned(both, "nvidia-uninstall and packages", "one of them", action=Action.CONFIG)
    if len(stated) < 1 or not all(versions.values()):
        return unknown("part of the driver reports no version", shown)
    return passed(stated.pop(), "one version")


def _packages_of_driver(listed: str) -> list[str]:
    """The installed packages of the driver in the answer of dpkg-query."""
    # dpkg calls an installed package ii, and a held one hi.
    packages = [line.split()[0] for line in listed.splitlines() if line.rstrip().endswith((" ii", " hi"))]
    return [name for name in packages if re.match(r"nvidia-(driver|dkms|kernel|utils|open)|libnvidia-compute", name)]


def _driver_packages(machine: MachineView) -> bool:
    return machine.available("dpkg_nvidia") and bool(_packages_of_driver(machine.output("dpkg_nvidia")))


@machine_check(
    id="driver-branch",
    title="The driver's branch supports the GPU and is maintained",
    reads="driver version, product name",
    rule="FAIL when the branch does not support the generation. WARN when its maintenance has ended. UNKNOWN when "
    "pai-install's list of maintained branches is outdated",
    source="NVIDIA's list of supported drivers",
    remedy="install a maintained branch that supports the GPU",
    gpus_only=True,
)
def supported_branch(machine: MachineView) -> Result:
    version = machine.smi.driver_version
    if not version:
        return unknown("the driver reports no version")
    branch = int(version.split(".")[0])
    names = {gpu.traits.generation for gpu in machine.gpus}
    known = sorted((found for name in names if (found := products().generations.get(name))), key=lambda item: item.age)
    for generation in known:
        first, last = generation.first_branch, generation.last_branch
        if last is not None and branch > last:
            return failed(f"branch {branch} no longer supports {generation.name}", version, f"<= {last}")
        if first is not None and branch < first:
            return failed(f"branch {branch} does not support {generation.name} yet", version, f">= {first}")
    if len(known) < len(names) or not names:
        return unknown("the generation of a GPU is not known", version)
    # a card whose support ended may stay on the last branch that has it, no other on that branch
    ended = branch in products().ended_branches and any(generation.last_branch == branch for generation in known)
    judged = _maintained(branch, version, last_of_its_card=ended)
    until = products().maintained_until
    if judged.verdict is Verdict.PASS and machine.collected_at > until.timestamp():
        return unknown(f"pai-install knows the maintained branches until {until:%Y-%m-%d} only", version)
    return judged


def _maintained(branch: int, version: str, *, last_of_its_card: bool) -> Result:
    maintained = products().maintained_branches
    if branch > max(maintained):
        return unknown(f"branch {branch} is unknown to this version of pai-install", version)
    if branch not in maintained and not last_of_its_card:
        newest = ", ".join(str(number) for number in maintained)
        return warned(f"branch {branch} no longer gets fixes", version, f"one of {newest}", action=Action.CONFIG)
    return passed(version)


@machine_check(
    id="driver-secure-boot",
    title="Secure Boot accepts the driver",
    reads="mokutil --sb-state, kernel log",
    rule="FAIL when Secure Boot rejected a module",
    source="own",
    remedy="enrol the module's key, or use the distribution's signed modules",
    gpus_only=True,
)
def secure_boot(machine: MachineView) -> Result:
    rejected = machine.events(LogKind.MODULE_REJECTED)
    state = machine.output("secure_boot", missing=Verdict.SKIP, allowed=(0, 1, 255))
    result = machine.result("secure_boot")
    enabled = "SecureBoot enabled" in state
    if result is not None and not re.search("SecureBoot|not supported", result.text):
        return unknown("mokutil does not report the state of Secure Boot")
    if enabled and rejected:
        return failed("Secure Boot rejects the driver: no enrolled key signed it", rejected[-1].text, "signed")
    return passed("enabled" if enabled else "disabled")


@machine_check(
    id="driver-dkms",
    title="DKMS has built the driver for the running kernel",
    reads="dkms status, /lib/modules",
    rule="FAIL when the module is missing. WARN when the kernel's headers are missing",
    source="own",
    remedy="install the kernel's headers and run dkms autoinstall",
    gpus_only=True,
)
def headers(machine: MachineView) -> Result:
    status = machine.output("dkms", missing=Verdict.SKIP)
    nvidia = [line for line in status.splitlines() if "nvidia" in line.lower()]
    if not nvidia:
        return skipped("the driver is not built by DKMS")
    kernel = machine.fact("kernel")
    release = str(kernel.get("release", "")) if isinstance(kernel, dict) else ""
    built = any(release in re.split(r"[\s,:/]+", line) and "installed" in line for line in nvidia)
    if not built:
        return failed(
            f"DKMS has not built the driver for the running kernel {release}", "; ".join(nvidia)[:200], release
        )
    if isinstance(kernel, dict) and not kernel.get("headers"):
        return warned("the headers of the running kernel are missing: the next driver build fails", release, "headers")
    return passed(release)


@machine_check(
    id="driver-held",
    title="The driver has no automatic upgrades",
    reads="unattended upgrades, held packages",
    rule="WARN when upgrades run and the driver is not held",
    source="NKP 1431",
    remedy="run apt-mark hold for the driver's packages",
    gpus_only=True,
)
def packages_held(machine: MachineView) -> Result:
    units = parse_units(machine.output("upgrade_units", missing=Verdict.SKIP))
    if not units:
        return unknown("systemctl lists no unit")
    running = [unit.name for unit in units.values() if unit.loaded and unit.active == "active"]
    listed = machine.output("dpkg_nvidia", missing=Verdict.SKIP, allowed=(0, 1))
    drivers = _packages_of_driver(listed)
    if not drivers:
        return skipped("the driver was not installed from a package")
    if not running:
        return passed("no automatic upgrades")
    held = set(machine.output("apt_hold").split())
    loose = sorted(set(drivers) - held)
    if loose:
        return warned(
            "unattended upgrades may replace the driver under running jobs",
            ", ".join(loose[:4]),
            "held",
            action=Action.CONFIG,
        )
    return passed("held", "held")


@machine_check(
    id="driver-device-nodes",
    title="The driver's device nodes exist",
    reads="/dev/nvidia*",
    rule="FAIL when nvidiactl, nvidia-uvm or all GPUs are missing",
    source="GOP validator",
    remedy="run nvidia-modprobe -u -c=0",
    gpus_only=True,
)
def nodes(machine: MachineView) -> Result:
    files = machine.files("/dev/nvidia", "files_driver")
    if not files and not machine.driver_visible:
        return unknown("nvidia-smi answers, but /proc and /dev show no driver")
    if not any(re.match(r"/dev/nvidia\d+$", path) for path in files):
        return failed("the device nodes of the GPUs are missing", "none", "/dev/nvidia0 ...", action=Action.CONFIG)
    missing = [path for path in ("/dev/nvidiactl", "/dev/nvidia-uvm") if path not in files]
    if missing:
        return failed(
            "device nodes are missing: " + ", ".join(missing), ", ".join(missing), "present", action=Action.CONFIG
        )
    return passed(len(files))


@machine_check(
    id="driver-peer-memory",
    title="GPUDirect RDMA is loaded on machines with RDMA",
    reads="/sys/class/infiniband, /proc/modules, /proc/driver/nvidia/version, the kernel's release",
    rule="WARN when nvidia_peermem is missing and DMA-BUF cannot replace it: without the open kernel "
    "module, or before Linux 5.12. SKIP when no port is active",
    source="GPUD, GOP",
    remedy="run modprobe nvidia-peermem",
    gpus_only=True,
)
def peer_memory(machine: MachineView) -> Result:
    ports = machine.ports
    if not any(port.is_up for port in ports):
        return skipped("no port is active" if ports else "no InfiniBand or RoCE device")
    modules = parse_modules(machine.file("/proc/modules"))
    if not modules:
        return unknown("the kernel's modules could not be read")
    if "nvidia_peermem" in modules or "nv_peer_mem" in modules:
        return passed("loaded", "loaded")
    if "Open Kernel Module" in machine.file("/proc/driver/nvidia/version"):
        release = _kernel_release(machine)
        if release is None:
            return unknown("the kernel release, and thus its support of DMA-BUF, is not known")
        if release >= _DMA_BUF:
            return passed("DMA-BUF", "nvidia_peermem or DMA-BUF")
    return warned(
        "GPUDirect RDMA is not loaded: NCCL copies through the host", "none", "nvidia_peermem", action=Action.CONFIG
    )


def _kernel_release(machine: MachineView) -> tuple[int, int] | None:
    kernel = machine.fact("kernel")
    found = re.match(r"(\d+)\.(\d+)", str(kernel.get("release", ""))) if isinstance(kernel, dict) else None
    return (int(found.group(1)), int(found.group(2))) if found else None


@machine_check(
    id="dcgm-health",
    title="DCGM agrees, where it is installed",
    reads="dcgmi health -c -j",
    rule="FAIL or WARN as reported by DCGM. UNKNOWN for unreadable output",
    source="DCGM",
    remedy="follow DCGM's message",
    action=Action.DRAIN,
    gpus_only=True,
)
def dcgm(machine: MachineView) -> Result:
    try:
        text = machine.output("dcgm_health", missing=Verdict.SKIP)
    except NotObservedError as gap:
        return skipped(gap.reason)
    if '"Overall Health"' not in text and "Overall Health" not in text:
        return unknown("the output of dcgmi cannot be read")
    word = re.search(r"Overall Health\W+(?:value\W+)?(\w+)", text)
    if word and word.group(1).lower() == "healthy":
        return passed("Healthy", "Healthy")
    if word and word.group(1).lower() == "warning":
        return warned("DCGM warns", text[:300], "Healthy")
    return failed("DCGM reports a failure", text[:300], "Healthy")
