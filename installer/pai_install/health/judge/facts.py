"""The data kept of a checked machine: traits for comparison, and the snapshot for the next run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from pai_install.checks.evidence import NotObservedError
from pai_install.checks.finding import Finding
from pai_install.checks.runner import ODD
from pai_install.checks.verdict import Verdict
from pai_install.health.evidence import fields
from pai_install.health.evidence.parse.host import parse_tracking
from pai_install.health.evidence.parse.links import parse_nvlink_errors, parse_nvlink_status
from pai_install.health.evidence.parse.nccl import COMMAND as ALL_REDUCE
from pai_install.health.evidence.parse.nccl import parse_all_reduce
from pai_install.health.evidence.parse.numbers import whole
from pai_install.health.evidence.parse.nvidia import normalise_bus_id
from pai_install.health.evidence.reading import State
from pai_install.health.judge.fleet import MachineFacts
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.view import MachineView
from pai_install.health.judge.xid import NVLINK_ERROR, failing_links
from pai_install.health.memory.snapshot import Baseline, GpuBaseline, PastIncident, Snapshot, card_of

T = TypeVar("T")
_COUNTERS = {
    "replays": fields.REPLAY,
    fields.HW_THERMAL_US.name: fields.HW_THERMAL_US,
    fields.POWER_BRAKE_US.name: fields.POWER_BRAKE_US,
    fields.SW_THERMAL_US.name: fields.SW_THERMAL_US,
}
_PCI_ERRORS = {
    "aer corrected": ("/aer_dev_correctable", r"TOTAL_ERR_COR (\d+)"),
    "aer nonfatal": ("/aer_dev_nonfatal", r"TOTAL_ERR_NONFATAL (\d+)"),
}
_GPU_TRAITS = {
    "vbios": fields.VBIOS,
    "inforom": fields.INFOROM,
    "gsp": fields.GSP,
    "gpu-memory": fields.MEMORY_TOTAL,
}


def facts_of(machine: MachineView) -> MachineFacts:
    """Returns the observed traits of one machine."""
    traits = {name: _common(machine.gpus, field) for name, field in _GPU_TRAITS.items()}
    answered = _attempt(lambda: machine.smi.driver_version) is not None
    traits["driver"] = _attempt(lambda: machine.smi.driver_version) or ""
    kernel = _attempt(lambda: machine.fact("kernel"))
    traits["kernel"] = str(kernel.get("release", "")) if isinstance(kernel, dict) else ""
    release = _attempt(lambda: machine.file("/etc/os-release")) or ""
    traits["os"] = _search(r'^PRETTY_NAME="?([^"\n]+)', release)
    traits["containerd"] = _search(
        r"\bv?(\d+\.\d+\.\d+\S*)", _attempt(lambda: machine.output("containerd_version")) or ""
    )
    traits["toolkit"] = _search(r"\b(\d+\.\d+\.\d+\S*)", _attempt(lambda: machine.output("toolkit_version")) or "")
    found_ports = _attempt(lambda: machine.ports)
    ports = found_ports or ()
    traits["rdma-ports"] = "" if found_ports is None else str(sum(port.is_up for port in ports))
    traits["rdma-firmware"] = ", ".join(sorted({port.firmware for port in ports if port.firmware}))
    tracking = parse_tracking(_attempt(lambda: machine.output("chrony_tracking")) or "")
    measured = parse_all_reduce(_attempt(lambda: machine.output(ALL_REDUCE)) or "")
    return MachineFacts(
        name=machine.name,
        expected=machine.expected,
        nvidia=machine.has_nvidia,
        traits={name: value for name, value in traits.items() if value},
        gpus=len(machine.gpus) if answered else None,
        mig_devices=sum(gpu.gpu.mig_devices for gpu in machine.gpus),
        clock_offset=tracking.offset if tracking else None,
        bandwidth=measured.bus_gbs if measured else None,
    )


def _attempt(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except (NotObservedError, *ODD):  # what a check says of it stands in its own finding
        return None


def _search(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match.group(1).strip() if match else ""


def _common(gpus: Iterable[GpuView], field: fields.Field) -> str:
    readings = [gpu.peek(field) for gpu in gpus]
    return ", ".join(sorted({reading.text for reading in readings if reading.state is State.VALUE}))


def snapshot_of(machine: MachineView, findings: Iterable[Finding]) -> Snapshot:
    """Returns the snapshot of this run for the next one."""
    found = list(findings)
    cards = {gpu.bus_id: card for gpu in machine.gpus if (card := card_of(gpu.peek(fields.UUID).text))}
    counters = {f"gpu {cards[gpu.bus_id]}": _numbers(gpu) for gpu in machine.gpus if gpu.bus_id in cards}
    counters.update(_host_counters(machine))
    # a card that fell off the bus no longer says who it is: an earlier run knows
    in_slot = {slot.partition(".")[0]: card for slot, card in {**machine.known_cards, **cards}.items()}
    incidents = _attempt(lambda: machine.incidents) or ()
    return Snapshot(
        time=machine.collected_at,
        boot_id=machine.boot_id,
        counters={group: values for group, values in counters.items() if values},
        gpus=cards,
        incidents=tuple(
            PastIncident(
                number,
                card_of(in_slot.get(incident.bus_id.partition(".")[0], "")) or incident.bus_id,
                machine.boot_id,
                incident.last_time or machine.collected_at,
                link,
            )
            for incident in incidents
            for number in sorted(incident.fatal) or (incident.cause.number,)
            for link in (sorted(failing_links(incident)) if number == NVLINK_ERROR else ()) or ("",)
        ),
        failed=tuple(sorted({finding.id for finding in found if finding.verdict is Verdict.FAIL})),
        warned=tuple(sorted({finding.id for finding in found if finding.verdict is Verdict.WARN})),
    )


def _numbers(gpu: GpuView) -> dict[str, float]:
    numbers = {name: gpu.peek(field).number for name, field in _COUNTERS.items()}
    return {name: number for name, number in numbers.items() if number is not None}


def _host_counters(machine: MachineView) -> dict[str, dict[str, float]]:
    counters: dict[str, dict[str, float]] = {}
    for port in _attempt(lambda: machine.ports) or ():
        counters[f"port {port.name}"] = {name: float(value) for name, value in port.counters.items()}
    for path, text in (_attempt(lambda: machine.files("/sys/class/net/", "files_host")) or {}).items():
        if path.endswith("/carrier_changes") and (count := whole(text)) is not None:
            counters[f"net {path.split('/')[4]}"] = {"carrier_changes": float(count)}
    for path, text in (_attempt(lambda: machine.files("/sys/bus/pci/devices/", "files_pci")) or {}).items():
        for name, (file, pattern) in _PCI_ERRORS.items():
            if path.endswith(file) and (total := _search(pattern, text)):
                counters.setdefault(f"pci {normalise_bus_id(path.split('/')[5])}", {})[name] = float(total)
    errors = parse_nvlink_errors(_attempt(lambda: machine.output("nvidia_smi_nvlink_errors")) or "")
    counters.update(
        (f"nvlink {index}", {name: float(value) for name, value in values.items()}) for index, values in errors.items()
    )
    edac = _attempt(lambda: machine.files("/sys/devices/system/edac/mc/", "files_host")) or {}
    read = [whole(text) for path, text in edac.items() if path.endswith("ce_count")]
    corrected = [count for count in read if count is not None]
    if corrected:
        counters["edac"] = {"corrected": float(sum(corrected))}
    return counters


def baseline_of(machine: MachineView) -> Baseline:
    """Returns the baseline that `health baseline --accept` stores for this machine's GPUs."""
    text = _attempt(lambda: machine.output("nvidia_smi_nvlink", allowed=(0, 1, 3, 255))) or ""
    links = {
        entry.uuid: sum(speed is not None for speed in entry.speeds.values()) for entry in parse_nvlink_status(text)
    }
    ports = _attempt(lambda: machine.ports)
    return Baseline(
        machine.collected_at,
        {
            gpu.bus_id: GpuBaseline(
                uuid=card_of(gpu.peek(fields.UUID).text),
                pcie_width=gpu.peek(fields.WIDTH).number,
                pcie_gen=gpu.peek(fields.GEN).number if gpu.peek(fields.PSTATE).text == "P0" else None,
                memory_mib=gpu.peek(fields.MEMORY_TOTAL).number,
                nvlinks=links.get(gpu.peek(fields.UUID).text),
            )
            for gpu in machine.gpus
        },
        None if ports is None else sum(port.is_up and port.link_layer == "InfiniBand" for port in ports),
    )
