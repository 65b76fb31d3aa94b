"""Machines of one SKU compared with each other: who differs from the majority."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from pai_install.checks.limits import Limits
from pai_install.checks.result import Result, failed, passed, skipped, unknown, warned
from pai_install.checks.verdict import Action
from pai_install.health.judge.check import FleetCheck, fleet_check
from pai_install.health.judge.fleet import HealthFleet, MachineFacts

_FEWEST = 3  # of two machines, either could be the odd one

# trait -> title, remedy
TRAITS = {
    "driver": ("driver version", "install the same driver everywhere: NCCL jobs across versions fail or slow down"),
    "vbios": ("VBIOS of the GPUs", "ask the vendor for the same VBIOS"),
    "inforom": ("infoROM image of the GPUs", "ask the vendor for the same image"),
    "gsp": ("GSP firmware", "reinstall the driver's firmware package"),
    "gpu-memory": ("memory of the GPUs", "see gpu-memory-size; another model may have been fitted"),
    "kernel": ("kernel release", "upgrade the machines to one kernel"),
    "os": ("operating system", "install one release"),
    "containerd": ("containerd version", "pai-install apply"),
    "toolkit": ("NVIDIA container toolkit version", "pai-install apply"),
    "rdma-ports": ("number of InfiniBand and RoCE ports that are up", "see rdma-ports on that machine"),
    "rdma-firmware": ("firmware of the InfiniBand or RoCE cards", "mlxfwmanager --online -u on the odd ones"),
}


def groups(fleet: HealthFleet) -> dict[str, list[MachineFacts]]:
    """Returns SKU -> machines. Machines without a SKU are not compared."""
    found: dict[str, list[MachineFacts]] = {}
    for machine in fleet.machines:
        if machine.expected.sku:
            found.setdefault(machine.expected.sku, []).append(machine)
    return found


def _trait_check(trait: str) -> FleetCheck:
    """The check that machines of one SKU are alike in one trait."""
    title, remedy = TRAITS[trait]
    declare = fleet_check(
        id=f"peers-{trait}",
        title=f"Machines of one SKU have one {title}",
        reads=title,
        rule="WARN for machines that differ from the majority of their SKU",
        source="own",
        remedy=remedy,
    )
    return declare(lambda fleet: _compare(trait, fleet))


TRAIT_CHECKS = tuple(_trait_check(trait) for trait in TRAITS)


def _compare(trait: str, fleet: HealthFleet) -> Iterator[tuple[str, Result]]:
    title = TRAITS[trait][0]
    for sku, machines in groups(fleet).items():
        stated = [machine.traits[trait] for machine in machines if machine.traits.get(trait)]
        if not stated:
            continue  # the whole SKU has no such thing: nothing to say of any machine
        usual, count = Counter(stated).most_common(1)[0]
        clear = count * 2 > len(stated) and len(stated) > 1
        for machine in machines:
            majority = f"{usual} ({count} of {len(machines)} {sku})" if clear else ""
            yield machine.name, _verdict(machine.traits.get(trait, ""), usual, majority, title)


def _verdict(value: str, usual: str, majority: str, title: str) -> Result:
    if not value:
        return unknown(f"the {title} was not observed")
    if majority and value == usual:
        return passed(value, majority)
    if majority:
        return warned(f"another {title} than the machines of the same SKU", value, majority)
    return skipped(f"no majority to compare the {title} with")


@fleet_check(
    id="peers-clock",
    title="Clocks of control planes, and of machines of one SKU, agree",
    reads="chronyc tracking of the control planes, and of at least three machines of a SKU",
    rule="WARN when more than clock-spread-seconds from the median",
    limits=("clock-spread-seconds",),
    source="etcd",
    remedy="follow the remedy of clock-offset on that machine",
)
def clocks(fleet: HealthFleet) -> Iterator[tuple[str, Result]]:
    most = fleet.limits.number("clock-spread-seconds")
    masters = [machine for machine in fleet.machines if machine.expected.control_plane]
    yield from _spread(masters, most, "the other control planes", fewest=2)
    for sku, machines in groups(fleet).items():
        others = [machine for machine in machines if not machine.expected.control_plane]
        yield from _spread(others, most, f"the other machines of {sku}", fewest=_FEWEST)


def _spread(machines: Sequence[MachineFacts], most: float, others: str, *, fewest: int) -> Iterator[tuple[str, Result]]:
    offsets = sorted(machine.clock_offset for machine in machines if machine.clock_offset is not None)
    if len(offsets) < fewest:
        return
    middle = offsets[len(offsets) // 2]
    for machine in machines:
        if machine.clock_offset is None:
            yield machine.name, unknown("the machine's clock was not observed")
            continue
        away = abs(machine.clock_offset - middle)
        value, expected = f"{away * 1000:.1f} ms", f"<= {most * 1000:.0f} ms"
        if away > most:
            yield machine.name, warned(f"the machine's clock differs from those of {others}", value, expected)
        else:
            yield machine.name, passed(value, expected)


@fleet_check(
    id="peers-bandwidth",
    title="No machine has a slower all-reduce than others of its SKU",
    reads="all_reduce_perf of at least three machines of a SKU (only with --bandwidth-image)",
    rule="WARN at nccl-behind-warn-percent below the median. FAIL at nccl-behind-fail-percent",
    limits=("nccl-behind-warn-percent", "nccl-behind-fail-percent"),
    source="own",
    remedy="follow the remedy of nccl-all-reduce on that machine",
    action=Action.DRAIN,
)
def bandwidth(fleet: HealthFleet) -> Iterator[tuple[str, Result]]:
    for sku, machines in groups(fleet).items():
        speeds = {machine.name: machine.bandwidth for machine in machines if machine.bandwidth is not None}
        for name, speed in speeds.items():
            if len(speeds) < _FEWEST:
                yield name, skipped("too few machines of this SKU were measured")
            else:
                yield name, _straggler(speed, median(speeds.values()), sku, fleet.limits)


def _straggler(speed: float, middle: float, sku: str, limits: Limits) -> Result:
    short = (1 - speed / middle) * 100 if middle else 0.0
    value, expected = f"{speed:g} GB/s, {short:.0f} % less", f"{middle:g} GB/s (median of {sku})"
    message = "all-reduce is slower than on other machines of the SKU: jobs on several nodes wait for this machine"
    if short > limits.number("nccl-behind-fail-percent"):
        return failed(message, value, expected, action=Action.DRAIN)
    if short > limits.number("nccl-behind-warn-percent"):
        return warned(message, value, expected)
    return passed(f"{speed:g} GB/s", expected)
