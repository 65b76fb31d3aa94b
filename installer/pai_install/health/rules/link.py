"""The GPU's PCIe link: width, generation, replays, AER."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from pai_install.health import fields
from pai_install.health.gpu_view import GpuView
from pai_install.health.model import (
    Action,
    CheckText,
    GpuCheck,
    Judgement,
    MachineCheck,
    NotObservedError,
    failed,
    passed,
    skipped,
    warned,
)
from pai_install.health.parse.kernel_log import LogKind
from pai_install.health.parse.nvidia import normalise_bus_id
from pai_install.health.view import MachineView

SYSFS = "/sys/bus/pci/devices/"


def _port_width(gpu: GpuView, machine: MachineView) -> float | None:
    try:
        files = machine.files(f"{SYSFS}{gpu.bus_id}/upstream/", "files_pci")
    except NotObservedError:
        return None
    text = files.get(f"{SYSFS}{gpu.bus_id}/upstream/max_link_width", "")
    return float(text) if text.isdecimal() and text != "0" else None


def _width(gpu: GpuView, machine: MachineView) -> Judgement:
    width, most = gpu.number(fields.WIDTH), gpu.number(fields.WIDTH_MAX)
    if width is None or most is None:
        return passed()
    accepted = gpu.baseline.pcie_width if gpu.baseline else None
    if accepted is not None:
        if width < accepted:
            return failed("the PCIe link is narrower than it was", f"x{width:.0f}", f"x{accepted:.0f} (baseline)")
        return passed(f"x{width:.0f}", f"x{accepted:.0f} (baseline)")
    if width >= most:
        return passed(f"x{width:.0f}", f"x{most:.0f}")
    port = _port_width(gpu, machine)
    if port is not None and width < min(most, port):
        return failed("the PCIe link is narrower than card and slot allow", f"x{width:.0f}", f"x{min(most, port):.0f}")
    return warned(
        "the PCIe link is narrower than the card allows; many cloud machines are wired so",
        f"x{width:.0f}",
        f"x{most:.0f}",
        remedy="when this is how the machine is built: pai-install health baseline --accept",
        action=Action.CONFIG,
    )


def _generation(gpu: GpuView, _machine: MachineView) -> Judgement:
    if gpu.text(fields.PSTATE) != "P0":
        return skipped("the link is judged in P0 only: idle GPUs slow it down") if not gpu.missing() else passed()
    now, most = gpu.number(fields.GEN), gpu.number(fields.GEN_MAX)
    if now is None or most is None:
        return passed()
    accepted = gpu.baseline.pcie_gen if gpu.baseline else None
    least = accepted if accepted is not None else most
    if now < least:
        verdict = failed if accepted is not None else warned
        return verdict("the PCIe link is slower than it should be in P0", f"gen {now:.0f}", f"gen {least:.0f}")
    return passed(f"gen {now:.0f}", f"gen {least:.0f}")


def _replays(gpu: GpuView, machine: MachineView) -> Judgement:
    replays, width, gen = gpu.number(fields.REPLAY), gpu.number(fields.WIDTH), gpu.number(fields.GEN)
    if replays is None or width is None or gen is None:
        return passed()
    delta = machine.delta(f"gpu {gpu.peek(fields.UUID).text}", "replays", replays)
    if delta is None:
        return skipped("no earlier run in this boot to compare with")
    per_minute = delta[0] / (delta[1] / 60)
    generation = min(max(int(gen), 1), 6)
    most = math.ceil(machine.limit(f"pcie-replays-per-lane-gen{generation}") * width)
    value, expected = f"{per_minute:.1f}/min", f"<= {most}/min"
    if per_minute > most * machine.limit("pcie-replays-fail-factor"):
        return failed("very many PCIe replays", value, expected)
    if per_minute > most:
        return warned("many PCIe replays", value, expected)
    return passed(value, expected)


def _aer(machine: MachineView) -> Iterator[Judgement]:
    fatal = machine.events(LogKind.AER_FATAL)
    if fatal:
        yield failed(f"{len(fatal)} uncorrected PCIe errors in the kernel log", fatal[-1].text, 0)
    files = machine.files(SYSFS, "files_pci")
    clean = not fatal
    for path, text in sorted(files.items()):
        if "/aer_dev_" not in path or "/upstream/" in path:
            continue
        bus_id = normalise_bus_id(path.removeprefix(SYSFS).split("/")[0])
        total = _aer_total(text)
        if path.endswith(("nonfatal", "fatal")):
            if total:
                clean = False
                yield failed(f"{total} uncorrected PCIe errors", str(total), 0, device=bus_id)
            continue
        delta = machine.delta(f"pci {bus_id}", "aer corrected", total)
        most = machine.limit("aer-corrected-per-hour")
        if delta and delta[0] / (delta[1] / 3600) > most:
            clean = False
            yield warned("many corrected PCIe errors", f"{delta[0]:.0f}", f"<= {most:.0f}/h", device=bus_id)
    if clean:
        yield passed(0, 0)


def _aer_total(text: str) -> int:
    match = re.search(r"TOTAL_ERR_\w+ (\d+)", text)
    return int(match.group(1)) if match else sum(int(number) for number in re.findall(r" (\d+)$", text, re.MULTILINE))


CHECKS = (
    GpuCheck(
        CheckText(
            "gpu-pcie-width",
            "The PCIe link is as wide as it should be",
            "pci/pci_gpu_link_info/link_widths, the port above it, baseline",
            "FAIL below the baseline, or below what card and slot allow; WARN below the card's own width",
            "own; GCM keeps such a manifest",
            "reseat card and riser; check the slot's settings in the BIOS",
            Action.DRAIN,
        ),
        _width,
    ),
    GpuCheck(
        CheckText(
            "gpu-pcie-gen",
            "The PCIe link is as fast as it should be",
            "pci/pci_gpu_link_info/pcie_gen, performance_state, baseline",
            "WARN below what card and slot allow, FAIL below the baseline; only in P0",
            "own",
            "reseat card and riser; check the slot's settings in the BIOS",
            Action.DRAIN,
        ),
        _generation,
    ),
    GpuCheck(
        CheckText(
            "gpu-pcie-replays",
            "Few PCIe replays since the last run",
            "pci/replay_counter, history",
            "WARN above pcie-replays-per-lane-genN times width per minute; FAIL at pcie-replays-fail-factor times it",
            "DCGM",
            "reseat card and riser; replace them when it goes on",
            Action.DRAIN,
        ),
        _replays,
    ),
    MachineCheck(
        CheckText(
            "pcie-aer",
            "No uncorrected PCIe errors",
            "kernel log, /sys/bus/pci/devices/*/aer_dev_*",
            "FAIL on any uncorrected error; WARN above aer-corrected-per-hour",
            "own",
            "reseat card and riser; replace them when it goes on",
            Action.DRAIN,
        ),
        _aer,
        gpus_only=True,
    ),
)
