"""InfiniBand, RoCE and Ethernet ports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pai_install.checks.result import Result, failed, passed, skipped, unknown, warned
from pai_install.checks.verdict import Action
from pai_install.health.evidence import fields
from pai_install.health.evidence.parse.links import FabricPort
from pai_install.health.judge.check import machine_check
from pai_install.health.judge.view import MachineView

_PORTS = "ib-ports"
_WHOLE_BOARD = 8  # GPUs: of fewer, as in a virtual machine with a part of a board, the number of ports is not known
_FATAL_COUNTERS = ("link_downed", "excessive_buffer_overrun_errors", "local_link_integrity_errors", "rnr_nak_retry_err")
# counter -> threshold name, seconds of its unit
_RATES = {
    "symbol_error": ("ib-symbol-errors-per-hour", 3600),
    "link_error_recovery": ("ib-recoveries-per-minute", 60),
    "port_rcv_errors": ("ib-receive-errors-per-second", 1),
}


@machine_check(
    id="rdma-ports",
    title="Every InfiniBand or RoCE port is up",
    reads="/sys/class/infiniband/*/ports/*, the network interfaces of the cards, baseline",
    rule="FAIL when a port is not ACTIVE and LinkUp, an active RoCE port has no interface that is up, or fewer "
    "InfiniBand ports are up than in the baseline or ib-ports. WARN for a slower link than others of the same "
    "card type, and when one never had a link in this boot, is off while most are up, none has "
    "ib-gigabits, or the machine has fewer than ib-ports",
    limits=("ib-gigabits", "ib-ports"),
    source="GPUD, GCM",
    remedy="check cable, transceiver, and switch port",
    action=Action.DRAIN,
)
def port_state(machine: MachineView) -> Iterator[Result]:
    ports = machine.ports
    if not ports:
        yield skipped("no InfiniBand or RoCE device")
    product = machine.gpus[0].peek(fields.PRODUCT).text if machine.gpus else ""
    wanted = machine.optional_limit("ib-gigabits", product)
    fabric = [port for port in ports if port.link_layer == "InfiniBand"]
    full_speed = 0
    shortage = _shortage(fabric, wanted, product, machine)
    # A baseline has accepted the ports that are off. Without one, a port that is off among many is odd.
    accepted = machine.baseline is not None and machine.baseline.ib_ports is not None
    odd_ones_out = shortage is None and not accepted and _most_are_up(fabric)
    served = any(port.is_up for port in fabric)
    for port in ports:
        odd = odd_ones_out and port in fabric
        yield _slower_than_its_like(port, ports) or _state_of(port, odd=odd, served=served)
        full_speed += port.rate is not None and wanted is not None and port.rate >= wanted and port in fabric
    if shortage:
        yield shortage
    if fabric and wanted is not None and not full_speed:
        rates = sorted({f"{port.rate:g}" if port.rate is not None else "?" for port in fabric})
        yield warned(
            "no InfiniBand port has the usual speed of machines with this GPU model",
            ", ".join(rates),
            f"{wanted:g} Gb/s",
        )


def _shortage(ports: Sequence[FabricPort], rate: float | None, product: str, machine: MachineView) -> Result | None:
    """Returns a result if fewer InfiniBand ports are up than in the baseline or in the GPU model's design."""
    up = [port for port in ports if port.is_up]
    fast = [port for port in up if rate is None or (port.rate or 0) >= rate]
    accepted = machine.baseline.ib_ports if machine.baseline else None
    message = "InfiniBand ports are missing: jobs on several nodes are slower, or hang"
    if accepted is not None:
        short = len(up) < accepted
        return failed(message, f"{len(up)} up", f"{accepted} (baseline)") if short else None
    limit = machine.limits.get(_PORTS, sku=machine.expected.sku, product=product)
    least = machine.optional_limit(_PORTS, product)
    own = limit is not None and limit.source.startswith("site")
    if least is None or not (own or (ports and len(machine.gpus) == _WHOLE_BOARD)) or len(fast) >= least:
        return None
    value, expected = f"{len(fast)} up of {len(ports)}", f"{least:.0f}"
    if own or len(ports) >= least:
        return failed(message, value, expected)
    remedy = "if the machine has this design, run pai-install health baseline --accept, or set ib-ports in health.yml"
    message = "fewer InfiniBand ports than usual for machines with these GPUs"
    return warned(message, value, expected, action=Action.CONFIG, remedy=remedy)


def _never_used(port: FabricPort) -> bool:
    """Whether nothing ever answered at the other end since the driver started: no cable, as it seems."""
    searching = "POLLING" in port.phys_state.upper() or "SLEEP" in port.phys_state.upper()
    return "DOWN" in port.state.upper() and searching and not port.counters.get("link_downed")


def _most_are_up(ports: Sequence[FabricPort]) -> bool:
    """Whether at least twice as many InfiniBand ports are up as not: the others are hardly meant to be off."""
    up = sum(port.is_up for port in ports)
    return up > 1 and up >= 2 * (len(ports) - up)


def _state_of(port: FabricPort, *, odd: bool, served: bool) -> Result:
    """odd: whether most other ports of its kind are up, and no one has accepted that some are not.

    served: whether a subnet manager has set up another port.
    """
    value = f"{port.state}, {port.phys_state}, {port.rate:g} Gb/s" if port.rate is not None else port.state
    if not port.state or not port.phys_state:
        return unknown("the port's state could not be read", device=port.name)
    if "DOWN" in port.state.upper() and "DISABLED" in port.phys_state.upper():
        return _switched_off(port, value) if odd else skipped("the port is disabled", device=port.name)
    if _never_used(port):
        return warned(
            "the port has had no link in this boot: the cable may be missing",
            value,
            "ACTIVE, LinkUp",
            device=port.name,
            remedy="connect the cable, or disable an unused port with mlxlink -d DEVICE --port_state DN",
        )
    if not port.is_up:
        return _not_up(port, value, served=served)
    if port.rate is None:
        return unknown("the port's speed could not be read", device=port.name)
    return _without_interface(port, value) or passed(value, "ACTIVE, LinkUp", device=port.name)


def _not_up(port: FabricPort, value: str, *, served: bool) -> Result:
    """A port with a link of a fabric that no one has set up waits for its subnet manager."""
    if "INIT" not in port.state.upper() or served:
        return failed("the port is not up", value, "ACTIVE, LinkUp", device=port.name)
    remedy = "start the subnet manager of this fabric (OpenSM, or that of a switch)"
    message = "no subnet manager has set the port up"
    return failed(message, value, "ACTIVE, LinkUp", device=port.name, action=Action.CONFIG, remedy=remedy)


def _slower_than_its_like(port: FabricPort, ports: Sequence[FabricPort]) -> Result | None:
    """Compares the speed of a port with those of at least two ports on cards of the same type."""
    like = [item for item in ports if item is not port and item.board == port.board and item.is_up]
    rates = {item.rate for item in like if item.link_layer == port.link_layer}
    if not port.is_up or port.rate is None or len(like) < 2 or len(rates) != 1:
        return None
    usual = rates.pop()
    if usual is None or port.rate >= usual:
        return None
    message = "the port is slower than all other ports on cards of the same type"
    return warned(message, f"{port.rate:g} Gb/s", f"{usual:g} Gb/s", device=port.name, action=Action.DRAIN)


def _without_interface(port: FabricPort, value: str) -> Result | None:
    """RoCE takes its addresses from the network interface. InfiniBand needs it for IP only."""
    if not port.interfaces or any(state != "down" for state in port.interfaces):
        return None
    message, remedy = "the network interface of the port is down", "ip link set INTERFACE up, and configure it at boot"
    if port.link_layer == "Ethernet":
        return failed(message, value, "an interface that is up", device=port.name, remedy=remedy)
    return warned(message, value, "up", device=port.name, action=Action.CONFIG, remedy=remedy)


def _switched_off(port: FabricPort, value: str) -> Result:
    remedy = "enable the port. If it is disabled on purpose, run pai-install health baseline --accept"
    message = "the port is disabled, but most other InfiniBand ports are up"
    return warned(message, value, "ACTIVE, LinkUp", device=port.name, action=Action.CONFIG, remedy=remedy)


@machine_check(
    id="rdma-errors",
    title="Error counters of the ports do not grow",
    reads="/sys/class/infiniband/*/ports/*/counters, history",
    rule="FAIL for link_downed, buffer overruns, integrity errors, rnr retries. WARN above the ib-* rates",
    limits=("ib-symbol-errors-per-hour", "ib-recoveries-per-minute", "ib-receive-errors-per-second"),
    source="NVS",
    remedy="clean or replace cable and transceiver",
    action=Action.DRAIN,
)
def port_counters(machine: MachineView) -> Iterator[Result]:
    ports = machine.ports
    compared = bad = False
    for port in ports:
        gone = machine.vanished(f"port {port.name}", port.counters) & {*_FATAL_COUNTERS, *_RATES}
        if gone:
            bad = True
            yield unknown(f"counters are missing since the last run: {', '.join(sorted(gone))}", device=port.name)
        for name, value in port.counters.items():
            delta = machine.delta(f"port {port.name}", name, value)
            if delta is None:
                continue
            compared = True
            judgement = _counter(machine, port, name, delta)
            if judgement:
                bad = True
                yield judgement
    if not ports:
        yield skipped("no InfiniBand or RoCE device")
    elif not compared and not bad:
        yield skipped("no earlier run in this boot for comparison")
    elif not bad:
        yield passed("no growth", "no growth")


def _counter(machine: MachineView, port: FabricPort, name: str, delta: tuple[float, float]) -> Result | None:
    value = f"+{delta[0]:.0f} in {delta[1]:.0f} s"
    if name in _FATAL_COUNTERS and delta[0] > 0:
        return failed(f"{name} grows", value, "no growth", device=port.name)
    if name in _RATES:
        limit, unit = _RATES[name]
        most = machine.limit(limit)
        if delta[0] / delta[1] * unit > most:
            return warned(f"{name} grows fast", value, f"<= {most:g} per {unit} s", device=port.name)
    return None


@machine_check(
    id="network-flaps",
    title="Network links are stable",
    reads="/sys/class/net/*/carrier_changes, history",
    rule="WARN when a link changed more than carrier-changes since the last run",
    limits=("carrier-changes",),
    source="NVS, AZ",
    remedy="check cable and switch port",
    action=Action.NONE,
)
def flaps(machine: MachineView) -> Iterator[Result]:
    files = machine.files("/sys/class/net/", "files_host")
    compared = bad = False
    for path, text in sorted(files.items()):
        name = path.split("/")[4]
        # Only interfaces of a card have a vendor. Those of pods come and go with them.
        if not path.endswith("/carrier_changes") or f"/sys/class/net/{name}/device/vendor" not in files:
            continue
        if machine.unused(name):
            continue
        if not text.isdecimal():
            bad = True
            yield unknown("the number of link changes cannot be read", text, device=name)
            continue
        delta = machine.delta(f"net {name}", "carrier_changes", float(text))
        compared = compared or delta is not None
        if delta and delta[0] > machine.limit("carrier-changes"):
            bad = True
            yield warned("the link flaps", f"+{delta[0]:.0f} in {delta[1]:.0f} s", "stable", device=name)
    if not compared and not bad:
        yield skipped("no earlier run in this boot for comparison")
    elif not bad:
        yield passed("stable", "stable")
