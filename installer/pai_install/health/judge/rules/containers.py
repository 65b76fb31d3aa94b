"""The way of a GPU into a container: runtimes, CDI, a test container."""

from __future__ import annotations

import re

from pai_install.checks.result import Result, failed, passed, skipped, unknown, warned
from pai_install.checks.verdict import Action, Verdict
from pai_install.health.evidence import fields
from pai_install.health.evidence.document import CommandResult
from pai_install.health.evidence.parse.host import parse_json_object, parse_units
from pai_install.health.judge.check import machine_check
from pai_install.health.judge.view import MachineView

_MIG = re.compile(r"MIG-[0-9a-fA-F]")
# The words of Docker and of ctr for an image that is not there.
_NO_IMAGE = re.compile(r"[Nn]o such image|image \S+: not found|manifest unknown|pull access denied")
_UUID = re.compile(r"GPU-[0-9a-fA-Fredct-]+")


@machine_check(
    id="container-services",
    title="containerd, Docker and the kubelet run",
    reads="systemd units",
    rule="FAIL when an installed service does not run and has no socket. WARN after more than 5 restarts, or while one "
    "starts in the first boot-seconds",
    limits=("boot-seconds",),
    source="OpenPAI k8sDockerDaemonNotOk",
    remedy="check systemctl status and journalctl -u of the service",
    action=Action.DRAIN,
)
def services(machine: MachineView) -> Result:
    units = parse_units(machine.output("host_units", missing=Verdict.SKIP))
    installed = [unit for unit in units.values() if unit.loaded and not unit.name.endswith(".socket")]
    if not installed:
        return skipped("neither containerd, Docker nor the kubelet is installed yet")
    # systemd starts Docker at the first connection to its socket, so an inactive service can be well.
    socket = units.get("docker.socket")
    awaited = machine.available("docker_info") or (socket is not None and socket.active == "active")
    asleep = {"docker"} if awaited else set()
    idle = [unit for unit in installed if unit.active != "active"]
    idle = [unit for unit in idle if not (unit.name in asleep and unit.active == "inactive")]
    stopped = [f"{unit.name} {unit.active}" for unit in idle]
    if stopped and machine.young and all(unit.active == "activating" for unit in idle):
        return warned("services are starting: the machine booted a moment ago", ", ".join(stopped), "active")
    if stopped:
        return failed("services are not running: " + ", ".join(stopped), ", ".join(stopped), "active")
    restarting = [f"{unit.name} {unit.restarts}" for unit in installed if unit.restarts > 5]
    if restarting:
        return warned("services restarted often", ", ".join(restarting), "<= 5")
    return passed(", ".join(unit.name for unit in installed), "active")


@machine_check(
    id="container-docker-runtime",
    title="Docker has the nvidia runtime",
    reads="docker info",
    rule="FAIL when it is missing. SKIP without Docker",
    source="GOP",
    remedy="run pai-install apply to register it",
    gpus_only=True,
)
def docker_runtime(machine: MachineView) -> Result:
    info = parse_json_object(machine.output("docker_info", missing=Verdict.SKIP))
    runtimes = info.get("Runtimes")
    if not isinstance(runtimes, dict):
        return unknown("docker info lists no runtimes")
    if "nvidia" not in runtimes:
        return failed("Docker has no nvidia runtime", ", ".join(runtimes), "nvidia")
    return passed(f"default {info.get('DefaultRuntime', '?')}", "nvidia registered")


@machine_check(
    id="container-containerd-runtime",
    title="containerd has the nvidia runtime",
    reads="containerd config dump",
    rule="FAIL when it is missing. SKIP without containerd",
    source="GOP",
    remedy="run pai-install apply to register it",
    gpus_only=True,
)
def containerd_runtime(machine: MachineView) -> Result:
    text = machine.output("containerd_config", missing=Verdict.SKIP)
    if not re.search(r"runtimes\.'?\"?nvidia", text):
        return failed("containerd has no nvidia runtime", "none", "nvidia")
    return passed("registered", "registered")


@machine_check(
    id="container-cdi",
    title="The CDI file matches the GPUs and the driver",
    reads="/var/run/cdi, /etc/cdi, nvidia-smi",
    rule="FAIL when the count or the driver version differs. WARN when the file is missing",
    source="own",
    remedy="run nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml",
    gpus_only=True,
)
def cdi(machine: MachineView) -> Result:
    files = {**machine.files("/var/run/cdi/", "files_host"), **machine.files("/etc/cdi/", "files_host")}
    specs = {path: text for path, text in files.items() if "nvidia.com/gpu" in text}
    if not specs:
        return warned(
            "the CDI file for NVIDIA GPUs is missing", "none", "/var/run/cdi/nvidia.yaml", action=Action.CONFIG
        )
    text = "\n".join(specs.values())
    names = set(re.findall(r"^\s*-?\s*\"?name\"?:\s*\"?(GPU-[\w-]+|\d+(?::\d+)?|all)\"?", text, re.MULTILINE))
    numbers = {name for name in names if name.isdecimal()}
    count = len(machine.smi.gpus)
    version = machine.smi.driver_version
    libraries = set(re.findall(r"libcuda\.so\.(\d{3}\.[\d.]+\d)", text))
    if libraries and version and version not in libraries:
        return failed("the CDI file is for another driver version", ", ".join(libraries), version)
    # Names such as 0:1 are MIG devices. Their number differs from that of the GPUs.
    if numbers and len(numbers) != count and not any(":" in name for name in names):
        return failed("the CDI file lists another number of GPUs", len(numbers), count)
    if not names:
        return unknown("the CDI file has no device")
    return passed(f"{len(names)} devices", f"{count} GPUs")


def _in_container(machine: MachineView, command: str, runtime: str) -> Result:
    result = machine.result(command)
    if result is None:
        return skipped("not requested: run `health --deep-image IMAGE`")
    if result.missing:
        return skipped(f"{runtime} is not installed")
    if result.rc != 0:
        return _not_run(result, runtime)
    host = {gpu.peek(fields.UUID).text for gpu in machine.gpus} if machine.smi else set()
    inside = set(_UUID.findall(result.stdout))
    if inside != host:
        return failed(f"a container in {runtime} has other GPUs than the machine", len(inside), len(host))
    if not inside:
        return unknown("no GPU reports a UUID")
    return passed(f"{len(inside)} GPUs", f"{len(host)} GPUs")


def _not_run(result: CommandResult, runtime: str) -> Result:
    if result.timed_out or result.not_started:
        return unknown(f"the container in {runtime} timed out")
    if _NO_IMAGE.search(result.text):
        return unknown(f"the image is not on the machine in {runtime}", result.text[-200:])
    return failed(f"a container with all GPUs did not run in {runtime}", result.text[-200:], "runs")


@machine_check(
    id="container-gpu-docker",
    title="A container in Docker sees every GPU",
    reads="docker run --runtime=nvidia IMAGE nvidia-smi -L with all GPUs (only with --deep-image)",
    rule="FAIL when it fails or the UUIDs differ",
    source="GOP validator",
    remedy="check the nvidia runtime and the device nodes",
    gpus_only=True,
)
def docker_gpu(machine: MachineView) -> Result:
    return _in_container(machine, "docker_gpu", "Docker")


@machine_check(
    id="container-gpu-containerd",
    title="A container in containerd sees every GPU",
    reads="ctr run --device nvidia.com/gpu=all IMAGE nvidia-smi -L (only with --deep-image)",
    rule="FAIL when it fails or the UUIDs differ",
    source="GOP validator",
    remedy="check the CDI file",
    gpus_only=True,
)
def containerd_gpu(machine: MachineView) -> Result:
    return _in_container(machine, "containerd_gpu", "containerd")


@machine_check(
    id="container-gpu-pod",
    title="A pod with one GPU runs through RuntimeClass nvidia",
    reads="a pod that runs nvidia-smi -L (only with --deep-image)",
    rule=(
        "FAIL when it fails or sees no GPU of the machine. UNKNOWN when it does not start, for example because all "
        "GPUs are in use"
    ),
    source="GOP validator",
    remedy="check the device plugin's pod, RuntimeClass nvidia, and the CDI file",
    gpus_only=True,
)
def pod_gpu(machine: MachineView) -> Result:
    result = machine.result("pod_gpu")
    if result is None:
        return skipped("not requested: run `health --deep-image IMAGE` on a site with a cluster")
    if result.timed_out:
        return unknown(f"the pod did not start in time: {result.stderr[:160]}")
    if result.rc != 0:
        return failed("a pod with one GPU did not run", result.text[-200:], "runs")
    host = {gpu.peek(fields.UUID).text for gpu in machine.gpus} if machine.smi else set()
    inside = set(_UUID.findall(result.stdout))
    if not inside:
        return failed("a pod with one GPU has no GPU", 0, 1)
    if not inside <= host and not _MIG.search(result.stdout):
        return failed(
            "a pod has a GPU that the machine does not report", ", ".join(sorted(inside)), "one of the machine's"
        )
    return passed(f"{len(inside)} GPU", "1 GPU")
