"""The GPU's PCIe link: width, generation, replays, AER."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import lru_cache

from pai_install.checks.evidence import NotObservedError
from pai_install.checks.result import Result, failed, passed, skipped, unknown, warned
from pai_install.checks.verdict import Action
from pai_install.health.evidence import fields
from pai_install.health.evidence.parse.kernel_log import LogEvent, LogKind
from pai_install.health.evidence.parse.nvidia import normalise_bus_id
from pai_install.health.judge.check import gpu_check, machine_check
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.view import FEWEST_PEERS, MachineView

SYSFS = "/sys/bus/pci/devices/"
_NARROWS_AT_IDLE = 6  # the PCIe generation since which a link may switch lanes off
_ACS_REDIRECTS = 0b1100  # of requests and of completions between peers
_AER_KINDS = ("fatal", "nonfatal", "correctable")
_AER = re.compile(r"devices/[^/]+/aer_dev_(fatal|nonfatal|correctable)$")
_BUS_ID = re.compile(r"\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b", re.IGNORECASE)


_WIDTHS = ("1", "2", "4", "8", "12", "16")  # a virtual port says 0, 32 or 255


def _sysfs_width(gpu: GpuView, machine: MachineView, name: str) -> float | None:
    """Returns the link width from sysfs, of the card or its upstream port, or None for virtual ports."""
    try:
        text = machine.file_of(f"{SYSFS}{gpu.bus_id}/{name}", "files_pci")
    except NotObservedError:
        return None
    return float(text) if text in _WIDTHS else None


@gpu_check(
    id="gpu-pcie-width",
    title="The PCIe link has its full width",
    reads="pci/pci_gpu_link_info/link_widths, the port above it, baseline",
    rule=(
        "FAIL below the baseline, below the limit of card and slot, or below all others of at least four GPUs of the "
        "same model. WARN below the card's width. Judged in P0 only for PCIe 6"
    ),
    source="own; GCM keeps such a manifest",
    remedy="reseat card and riser. Check the slot's settings in the BIOS",
    action=Action.DRAIN,
)
def link_width(gpu: GpuView, machine: MachineView) -> Result:
    width, most = gpu.number(fields.WIDTH), gpu.number(fields.WIDTH_MAX)
    if width is None or most is None:
        return passed()
    most = min(most, _sysfs_width(gpu, machine, "max_link_width") or most)
    accepted = gpu.baseline.pcie_width if gpu.baseline else None
    if accepted is not None:
        if width < accepted:
            return failed(
                "the PCIe link is narrower than in the baseline", f"x{width:.0f}", f"x{accepted:.0f} (baseline)"
            )
        return passed(f"x{width:.0f}", f"x{accepted:.0f} (baseline)")
    if (
        width < most
        and (gpu.peek(fields.GEN_MAX).number or 0) >= _NARROWS_AT_IDLE
        and gpu.peek(fields.PSTATE).text != "P0"
    ):
        return skipped("judged in P0 only: PCIe 6 drops lanes of an idle link")
    return _width_of_slot(gpu, machine, width, most)


def _width_of_slot(gpu: GpuView, machine: MachineView, width: float, most: float) -> Result:
    """Compares the width with that of card and slot, for machines without a baseline."""
    if width >= most:
        return passed(f"x{width:.0f}", f"x{most:.0f}")
    port = _sysfs_width(gpu, machine, "upstream/max_link_width")
    if port is not None and width < min(most, port):
        return failed("the PCIe link is narrower than card and slot allow", f"x{width:.0f}", f"x{min(most, port):.0f}")
    others = [other.peek(fields.WIDTH).number for other in machine.peers(gpu)]
    if len(others) >= FEWEST_PEERS and all(other is not None and other >= most for other in others):
        message = "the PCIe link is narrower than those of all other GPUs of this machine"
        return failed(message, f"x{width:.0f}", f"x{most:.0f}")
    return warned(
        "the PCIe link is narrower than the card allows (normal on many cloud machines)",
        f"x{width:.0f}",
        f"x{most:.0f}",
        remedy="if the machine has this design, run pai-install health baseline --accept",
        action=Action.CONFIG,
    )


@gpu_check(
    id="gpu-pcie-gen",
    title="The PCIe link has its full speed",
    reads="pci/pci_gpu_link_info/pcie_gen, performance_state, utilization, baseline",
    rule="WARN below the limit of card and slot. FAIL below the baseline. Judged in P0 or under load only",
    source="own",
    remedy="reseat card and riser. Check the slot's settings in the BIOS",
    action=Action.DRAIN,
)
def link_generation(gpu: GpuView, _machine: MachineView) -> Result:
    if gpu.text(fields.PSTATE) != "P0" and not gpu.works:
        return skipped("judged in P0 only: idle GPUs reduce the link speed") if gpu.record.complete else passed()
    now, most = gpu.number(fields.GEN), gpu.number(fields.GEN_MAX)
    if now is None or most is None:
        return passed()
    accepted = gpu.baseline.pcie_gen if gpu.baseline else None
    least = accepted if accepted is not None else most
    if now < least:
        verdict = failed if accepted is not None else warned
        return verdict(
            "the PCIe link is slower than it should be in P0 or at work", f"gen {now:.0f}", f"gen {least:.0f}"
        )
    return passed(f"gen {now:.0f}", f"gen {least:.0f}")


@machine_check(
    id="gpu-numa-node",
    title="The NUMA node of every GPU is known",
    reads="/sys/bus/pci/devices/*/numa_node",
    rule="WARN for GPUs without one (-1) if other GPUs have one. SKIP if no GPU has one",
    source="Linux, ABI of sysfs-bus-pci",
    remedy=(
        "update the BIOS. Until then, the kubelet cannot align the processors and network cards of jobs with these GPUs"
    ),
    action=Action.CONFIG,
    gpus_only=True,
)
def numa_node(machine: MachineView) -> Result:
    nodes = {bus_id: machine.file_of(f"{SYSFS}{bus_id}/numa_node", "files_pci") for bus_id in sorted(machine.bus_ids)}
    known = {bus_id: node for bus_id, node in nodes.items() if node and node.isdecimal()}
    if not known:
        return skipped("the firmware reports no NUMA nodes: this machine has only one, or is virtual")
    strange = [bus_id for bus_id in nodes if bus_id not in known]
    if not strange:
        return passed(", ".join(sorted(set(known.values()))))
    if any(nodes[bus_id] != "-1" for bus_id in strange):
        return unknown(f"numa_node cannot be read: {', '.join(strange)}")
    message = "the firmware reports no NUMA node for these GPUs"
    return warned(message, ", ".join(strange), "known for all", action=Action.CONFIG)


@machine_check(
    id="pcie-direct",
    title="IOMMU and ACS do not redirect transfers between GPUs and network cards",
    reads="/sys/bus/pci/devices/*/iommu_group/type, ACS control of the switches above the GPUs",
    rule="WARN when the IOMMU translates for a GPU, or a switch above one redirects transfers between GPUs through "
    "the processor. SKIP for one GPU without an active port",
    source="NVIDIA's GPUDirect RDMA guide; NCCL's; GPUD",
    remedy="boot with iommu=pt (or disable the IOMMU), and disable ACS of the PCIe switches in the BIOS or with setpci",
    action=Action.CONFIG,
    gpus_only=True,
)
def direct(machine: MachineView) -> Iterator[Result]:
    gpus = sorted(machine.bus_ids)
    if len(gpus) < 2 and not any(port.is_up for port in machine.ports):
        yield skipped("one GPU and no active InfiniBand or RoCE port")
        return
    kinds = {gpu: machine.file_of(f"{SYSFS}{gpu}/iommu_group/type", "files_pci") or "" for gpu in gpus}
    translated = [gpu for gpu, kind in kinds.items() if kind.startswith("DMA")]
    if translated:
        message = "the IOMMU translates addresses for GPUs: transfers between GPUs and network cards take a detour"
        yield warned(
            message, f"{kinds[translated[0]]} ({len(translated)} GPUs)", "identity, or off", action=Action.CONFIG
        )
    redirected, unread = set(), set()
    for gpu in gpus:
        text = machine.file_of(f"{SYSFS}{gpu}/upstream/acs", "files_pci")
        for line in (text or "?").splitlines():
            port, _, control = line.rpartition(" ")
            if control == "?":
                unread.add(gpu)
            elif control.startswith("0x") and int(control[:6], 16) & _ACS_REDIRECTS:
                redirected.add(port)
    if redirected:
        message = "PCIe switches above GPUs redirect transfers between GPUs (ACS)"
        yield warned(message, ", ".join(sorted(redirected)[:4]), "no redirection", action=Action.CONFIG)
    elif unread:
        yield unknown(f"ACS of the switches could not be read: {', '.join(sorted(unread)[:4])}")
    elif not translated:
        yield passed("no IOMMU translation, no ACS redirection")


@gpu_check(
    id="gpu-pcie-replays",
    title="Few PCIe replays since the last run",
    reads="pci/replay_counter, history",
    rule="WARN above pcie-replays-per-lane-genN times width per minute. FAIL at pcie-replays-fail-factor times it",
    limits=(
        "pcie-replays-per-lane-gen1",
        "pcie-replays-per-lane-gen2",
        "pcie-replays-per-lane-gen3",
        "pcie-replays-per-lane-gen4",
        "pcie-replays-per-lane-gen5",
        "pcie-replays-per-lane-gen6",
        "pcie-replays-fail-factor",
    ),
    source="DCGM",
    remedy="reseat card and riser. Replace them if the errors continue",
    action=Action.DRAIN,
)
def link_replays(gpu: GpuView, machine: MachineView) -> Result:
    replays, width, gen = gpu.number(fields.REPLAY), gpu.number(fields.WIDTH), gpu.number(fields.GEN_MAX)
    if replays is None or width is None or gen is None:
        return passed()
    delta = machine.delta(f"gpu {gpu.peek(fields.UUID).text}", "replays", replays)
    if delta is None:
        return skipped("no earlier run in this boot for comparison")
    per_minute = delta[0] / (delta[1] / 60)
    # not the present generation: idle GPUs slow their link down
    accepted = gpu.baseline.pcie_gen if gpu.baseline else None
    generation = min(max(int(accepted or gen), 1), 6)
    most = math.ceil(machine.limit(f"pcie-replays-per-lane-gen{generation}") * width)
    value, expected = f"{per_minute:.1f}/min", f"<= {most}/min"
    if per_minute > most * machine.limit("pcie-replays-fail-factor"):
        return failed("very many PCIe replays", value, expected)
    if per_minute > most:
        return warned("many PCIe replays", value, expected)
    return passed(value, expected)


def _near(bus_id: str, gpu: str) -> bool:
    """Whether a PCIe port may be one of those above a GPU: at most three buses below it (root, switch, port)."""
    domain, bus, *_ = bus_id.split(":")
    gpu_domain, gpu_bus, *_ = gpu.split(":")
    return domain == gpu_domain and 0 < int(gpu_bus, 16) - int(bus, 16) <= 3


def _of_gpus(event: LogEvent, gpus: frozenset[str]) -> bool:
    """Whether a line is about a GPU, or about a port near one without naming another device behind it."""
    named = {normalise_bus_id(text) for text in _BUS_ID.findall(event.text)}
    if named & gpus:
        return True
    return "pcieport" in event.text and len(named) == 1 and any(_near(port, gpu) for port in named for gpu in gpus)


def _aer_log(machine: MachineView) -> Iterator[Result]:
    gpus = machine.bus_ids
    fatal = [event for event in machine.events(LogKind.AER_FATAL) if _of_gpus(event, gpus)]
    mild = [event for event in machine.events(LogKind.AER_NONFATAL) if _of_gpus(event, gpus)]
    if fatal:
        verdict = failed if any(machine.recent(event.time) for event in fatal) else warned
        yield verdict(f"{len(fatal)} fatal PCIe errors in the kernel log", fatal[-1].text, 0)
    elif any(machine.recent(event.time) for event in mild):
        yield warned(f"{len(mild)} uncorrected PCIe errors in the kernel log", mild[-1].text, 0)


@machine_check(
    id="pcie-aer",
    title="No PCIe errors of the GPUs",
    reads="kernel log, /sys/bus/pci/devices/*/aer_dev_*",
    rule=(
        "FAIL for a fatal error of a GPU or a port above it (in the log: within xid-window-hours). WARN when other "
        "errors grow (corrected errors: by aer-corrected-per-hour)"
    ),
    limits=("xid-window-hours", "aer-nonfatal", "aer-corrected-per-hour"),
    source="own",
    remedy="reseat card and riser. Replace them if the errors continue",
    action=Action.DRAIN,
    gpus_only=True,
)
def aer(machine: MachineView) -> Iterator[Result]:
    found = list(_aer_log(machine))
    yield from found
    files = machine.files(SYSFS, "files_pci")
    totals = {path: _aer_total(text) for path, text in sorted(files.items()) if _AER.search(path)}
    if not totals and not found:
        yield skipped("the kernel counts no PCIe errors on this machine (no AER)")
    bad = bool(found)
    for bus_id in sorted(machine.bus_ids) if totals else ():
        missing = [kind for kind in _AER_KINDS if f"{SYSFS}{bus_id}/aer_dev_{kind}" not in totals]
        if missing:
            bad = True
            yield unknown(f"the count of PCIe errors cannot be read: {', '.join(missing)}", device=bus_id)
    for path, total in totals.items():
        judgement = _aer_count(machine, path, total)
        bad = bad or judgement is not None
        if judgement:
            yield judgement
    if totals and not bad:
        yield passed(0, 0)


def _aer_count(machine: MachineView, path: str, total: int | None) -> Result | None:
    bus_id, kind = normalise_bus_id(path.removeprefix(SYSFS).split("/")[0]), path.rpartition("aer_dev_")[2]
    if total is None:
        return unknown(f"{path} holds no number", device=bus_id)
    if kind == "fatal":
        return failed(f"{total} fatal PCIe errors", str(total), 0, device=bus_id) if total else None
    counter, most = {
        "nonfatal": ("aer nonfatal", machine.limit("aer-nonfatal")),
        "correctable": ("aer corrected", machine.limit("aer-corrected-per-hour")),
    }[kind]
    delta = machine.delta(f"pci {bus_id}", counter, total)
    if not delta:
        return None
    if kind == "nonfatal" and delta[0] > most:
        return warned("uncorrected PCIe errors grow", f"+{delta[0]:.0f}", f"<= {most:.0f}", device=bus_id)
    if kind == "correctable" and delta[0] / (delta[1] / 3600) > most:
        return warned("many corrected PCIe errors", f"{delta[0]:.0f}", f"<= {most:.0f}/h", device=bus_id)
    return None


@lru_cache(maxsize=4096)  # most counts of a thousand machines are the same
def _aer_total(text: str) -> int | None:
    match = re.search(r"TOTAL_ERR_\w+ (\d+)", text)
    numbers = [match.group(1)] if match else re.findall(r" (\d+)$", text, re.MULTILINE)
    return sum(int(number) for number in numbers) if numbers else None
