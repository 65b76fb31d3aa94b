"""The machine's GPUs against the bus, the driver, the layout and the last run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pai_install.checks.evidence import NotObservedError
from pai_install.checks.result import Result, failed, passed, skipped, unknown, warned
from pai_install.checks.verdict import Action
from pai_install.health.evidence import fields
from pai_install.health.evidence.parse.host import parse_meminfo
from pai_install.health.evidence.parse.links import nvidia_gpus
from pai_install.health.evidence.parse.nvidia import normalise_bus_id
from pai_install.health.evidence.reading import State
from pai_install.health.judge.check import gpu_check, machine_check
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.product import same_model
from pai_install.health.judge.view import MachineView
from pai_install.health.memory.snapshot import card_of

_PROC = "/proc/driver/nvidia/gpus/"
_LISTED = re.compile(r"^GPU \d+: ", re.MULTILINE)
_NODE = re.compile(r"^/dev/nvidia\d+$")


@dataclass(frozen=True, slots=True)
class _Source:
    """One place that knows GPUs. ids: None where it only counts. gap: why it could not be asked."""

    name: str
    count: int | None
    ids: frozenset[str] | None = None
    gap: str = ""


def _sources(machine: MachineView) -> list[_Source]:
    found = []
    try:
        seen = frozenset(normalise_bus_id(gpu.bus_id) for gpu in machine.smi.gpus)
        found.append(_Source("nvidia-smi", len(seen), seen))
    except NotObservedError as gap:
        found.append(_Source("nvidia-smi", None, gap=gap.reason))
    if machine.available("nvidia_smi_list") and (rows := _LISTED.findall(machine.output("nvidia_smi_list"))):
        found.append(_Source("nvidia-smi -L", len(rows)))
    try:
        on_bus = machine.bus_ids
        found.append(_Source("bus", len(on_bus), on_bus))
        files = machine.files(_PROC, "files_driver")
        ids = frozenset(normalise_bus_id(path.removeprefix(_PROC).split("/")[0]) for path in files)
        found.append(_Source("/proc", len(ids), ids))
        nodes = [path for path in machine.files("/dev/nvidia", "files_driver") if _NODE.match(path)]
        found.append(_Source("/dev", len(nodes)))
    except NotObservedError as gap:
        found.append(_Source("bus, /proc or /dev", None, gap=gap.reason))
    return found


@machine_check(
    id="gpu-count",
    title="The machine has the GPUs of the layout, and all sources agree",
    reads="nvidia-smi -q and -L, lspci, /proc/driver/nvidia/gpus, /dev/nvidia*, layout",
    rule="FAIL for fewer GPUs or different sources. WARN for more GPUs",
    source="GPUD, AZ, NHV",
    remedy="find the missing bus id in the kernel log. Reseat the card, check its power, or correct the layout",
    action=Action.REBOOT,
    gpus_only=True,
)
def gpu_count(machine: MachineView) -> Result:
    sources = _sources(machine)
    of_driver = [source for source in sources if source.name.startswith("nvidia-smi")]
    # Here nvidia-smi is a stand-in or talks to a host. What the kernel lacks is then a gap, and no difference.
    if not machine.driver_visible and not any(source.count for source in sources if source not in of_driver):
        sources = [*of_driver, _Source("kernel", None, gap="neither bus nor /proc nor /dev shows an NVIDIA GPU")]
    counts = {source.name: source.count for source in sources if source.count is not None}
    value = ", ".join(f"{name} {count}" for name, count in counts.items())
    wanted = machine.expected.count if machine.expected.nvidia else None
    expected = f"{wanted} (layout)" if wanted is not None else "all alike"
    problem = _miscount(sources, counts, wanted, _attached(machine))
    if problem:
        return failed(problem, value, expected)
    gaps = [f"{source.name}: {source.gap}" for source in sources if source.gap]
    if gaps:
        return unknown("; ".join(gaps), value)
    if wanted is not None and any(count > wanted for count in counts.values()):
        return warned("more GPUs than in the layout", value, expected, action=Action.CONFIG)
    return passed(value, expected)


def _miscount(sources: list[_Source], counts: dict[str, int], wanted: int | None, attached: int | None) -> str:
    known = [source.ids for source in sources if source.ids is not None]
    missing = sorted(frozenset().union(*known) - frozenset.intersection(*known)) if known else []
    named = f" (missing in some sources: {', '.join(missing)})" if missing else ""
    shown = counts.get("nvidia-smi")
    if attached is not None and shown is not None and attached != shown:
        return f"nvidia-smi says that {attached} GPUs are attached and shows {shown}"
    if wanted is not None and any(count < wanted for count in counts.values()):
        return f"fewer GPUs than in the layout{named}"
    if len(set(counts.values())) > 1 or missing:
        return f"the places that know the GPUs disagree{named}"
    return ""


def _attached(machine: MachineView) -> int | None:
    try:
        text = machine.smi.attached
    except NotObservedError:
        return None
    return int(text) if text.isdecimal() else None


@machine_check(
    id="gpu-on-bus",
    title="Every GPU answers on the PCI bus",
    reads="lspci, or the configuration space in /sys/bus/pci/devices",
    rule="FAIL for revision ff",
    source="own",
    remedy="power the machine off and on",
    action=Action.REBOOT,
    gpus_only=True,
)
def bus_answers(machine: MachineView) -> Result:
    devices = nvidia_gpus(machine.nvidia_pci)
    lost = [device.bus_id for device in devices if device.lost]
    if lost:
        return failed("fallen off the bus: " + ", ".join(lost), ", ".join(lost), "none")
    if not devices:
        return unknown("the PCI bus shows no NVIDIA GPU")
    return passed(len(devices))


@gpu_check(
    id="gpu-model",
    title="The GPU is the model of the layout",
    reads="product_name, layout",
    rule="FAIL when the name lacks a word of the layout's model, or memory size or form factor differ",
    source="own",
    remedy="correct the layout, or the machine",
)
def model(gpu: GpuView, machine: MachineView) -> Result:
    name, wanted = gpu.text(fields.PRODUCT), machine.expected.model
    if not wanted or not machine.expected.nvidia:
        return skipped("the layout has no model") if gpu.record.complete else passed(name)
    if name and not same_model(name, wanted):
        return failed("another GPU model than in the layout", name, wanted)
    return passed(name, wanted)


@machine_check(
    id="gpu-mixed-models",
    title="All GPUs of the machine have the same model",
    reads="product_name",
    rule="WARN when models differ",
    source="own",
    action=Action.NONE,
    gpus_only=True,
)
def mixed(machine: MachineView) -> Result:
    assert machine.smi  # noqa: S101 - reading records it and raises
    readings = [gpu.peek(fields.PRODUCT) for gpu in machine.gpus]
    names = sorted({reading.text for reading in readings if reading.state is State.VALUE})
    if len(names) > 1:
        return warned("different GPU models in one machine", ", ".join(names), "one model")
    if not names or any(reading.state is not State.VALUE for reading in readings):
        return unknown("a GPU reports no name")
    return passed(names[0])


@machine_check(
    id="gpu-replaced",
    title="The GPUs have not changed since the last run",
    reads="uuid, history",
    rule="WARN when a slot has another card",
    source="own",
    gpus_only=True,
)
def replaced(machine: MachineView) -> Result:
    assert machine.smi  # noqa: S101 - reading records it and raises
    now = {gpu.bus_id: gpu.peek(fields.UUID).text for gpu in machine.gpus}
    before = machine.known_cards
    if not before:
        return skipped("no earlier run for comparison")
    cards = {bus_id: text for bus_id, text in now.items() if card_of(text)}
    known = set(before.values())
    # A card is reported if its slot had another one before, or if the card was in another slot.
    changed = sorted(
        bus_id
        for bus_id, card in cards.items()
        if before.get(bus_id, card) != card or card in known - {before.get(bus_id)}
    )
    if changed:
        return warned(
            "GPUs were replaced or moved since the last run: " + ", ".join(changed),
            ", ".join(changed),
            "as before",
            action=Action.CONFIG,
            remedy="if this is intended, run pai-install health baseline --accept",
        )
    if not now or len(cards) < len(now):
        return unknown("a GPU reports no UUID")
    return passed(f"{len(now)} as before")


@machine_check(
    id="host-memory",
    title="The machine has the memory of the layout",
    reads="/proc/meminfo, layout",
    rule="FAIL when it is more than ram-short-percent below the layout",
    limits=("ram-short-percent",),
    source="NHC",
    remedy="find failed modules in the BIOS and the BMC, or correct the layout",
    action=Action.DRAIN,
)
def memory_of_host(machine: MachineView) -> Result:
    wanted = machine.expected.ram_bytes
    total = parse_meminfo(machine.file("/proc/meminfo")).get("MemTotal")
    if wanted is None:
        return skipped("the layout has no memory size")
    if total is None:
        return unknown("/proc/meminfo has no total")
    least = wanted * (1 - machine.limit("ram-short-percent") / 100)
    value, expected = f"{total / 2**30:.1f} GiB", f">= {least / 2**30:.1f} GiB"
    if total < least:
        return failed("less memory than in the layout", value, expected)
    return passed(value, expected)


@machine_check(
    id="host-processors",
    title="The machine has the processors of the layout",
    reads="processor count, layout",
    rule="FAIL for fewer processors",
    source="NHC",
    remedy="check the BIOS (a socket or hyper-threading is off), or correct the layout",
)
def processors(machine: MachineView) -> Result:
    kernel = machine.fact("kernel")
    count = kernel.get("cpus") if isinstance(kernel, dict) else None
    wanted = machine.expected.cpus
    if wanted is None:
        return skipped("the layout has no processor count")
    if not isinstance(count, int):
        return unknown("the number of processors is not known")
    if count < wanted:
        return failed("fewer processors than in the layout", count, wanted)
    return passed(count, wanted)


@machine_check(
    id="other-devices",
    title="Devices of other vendors exist",
    reads="lspci, layout",
    rule="FAIL for fewer devices than in the layout. Otherwise UNKNOWN with the count",
    source="own",
    remedy="reseat the card, and run the vendor's own tool",
    action=Action.DRAIN,
)
def other_device(machine: MachineView) -> Result:
    device, wanted = machine.expected.device, machine.expected.count
    if not device or machine.expected.nvidia:
        return skipped("the SKU has no device of another vendor")
    if device.startswith("amd.com/"):
        # Only display controllers and accelerators: other functions of a card have the same vendor.
        seen = [
            item
            for item in machine.pci
            if item.vendor == "1002" and item.device_class in ("0300", "0302", "0380", "1200")
        ]
        if wanted is not None and len(seen) < wanted:
            return failed(f"fewer {device} than in the layout", len(seen), wanted)
        return unknown(
            f"{len(seen)} on the bus, but the health of {device} is not known to pai-install", str(len(seen))
        )
    return unknown(f"the health of {device} is not known to pai-install")
