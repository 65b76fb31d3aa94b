"""Heat, clocks and power."""

from __future__ import annotations

from statistics import median

from pai_install.checks.result import Result, failed, passed, skipped, unknown, warned
from pai_install.checks.verdict import Action
from pai_install.health.evidence import fields
from pai_install.health.evidence.fields import Field
from pai_install.health.evidence.reading import State
from pai_install.health.judge.check import gpu_check
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.view import FEWEST_PEERS, MachineView

ACTIVE = ("active", "not active")


@gpu_check(
    id="gpu-temperature",
    title="The GPU's temperature is below its limit",
    reads="temperature: gpu_temp with gpu_temp_tlimit (Ada and newer) or gpu_temp_slow_threshold",
    rule="FAIL at the slowdown temperature. WARN within temperature-margin of it, or for an idle GPU that is "
    "temperature-spread hotter than the median of at least three idle GPUs of its model",
    limits=("temperature-margin", "temperature-spread"),
    source="GPUD; own margin",
    remedy="check fans, air flow, dust, and the room temperature",
    action=Action.DRAIN,
)
def temperature(gpu: GpuView, machine: MachineView) -> Result:
    celsius, margin = gpu.number(fields.TEMPERATURE), machine.limit("temperature-margin")
    # Cards before Ada report the temperature at which they slow down. Later ones report how far away it is.
    if gpu.peek(fields.TEMP_SLOW).state is State.VALUE:
        slow, most = gpu.number(fields.TEMP_SLOW), gpu.number(fields.TEMP_MAX)
        if celsius is None or slow is None:
            return passed()
        left = slow - celsius
        where = f"slows down at {slow:.0f} C" + (f", off at {most:.0f} C" if most is not None else "")
    else:
        left_or_none = gpu.number(fields.TLIMIT)
        if celsius is None or left_or_none is None:
            return passed()
        left, where = left_or_none, "margin above 0"
    value = f"{celsius:.0f} C, {left:.0f} C left"
    if left <= 0:
        return failed("the GPU is too hot and throttles", value, where)
    if left < margin:
        return warned("the GPU is almost too hot", value, f">= {margin:.0f} C left")
    return _hotter_than_its_peers(gpu, machine) or passed(value, f">= {margin:.0f} C left")


def _idles(gpu: GpuView) -> bool:
    return gpu.peek(fields.UTILISATION).number == 0 and gpu.peek(fields.IDLE).text.lower() == "active"


def _hotter_than_its_peers(gpu: GpuView, machine: MachineView) -> Result | None:
    """Idle GPUs of one model in one air flow have about the same temperature."""
    own = gpu.peek(fields.TEMPERATURE).number
    others = [other.peek(fields.TEMPERATURE).number for other in machine.peers(gpu) if _idles(other)]
    known = [other for other in others if other is not None]
    if own is None or not _idles(gpu) or len(known) < FEWEST_PEERS:
        return None
    most = median(known) + machine.limit("temperature-spread")
    if own <= most:
        return None
    message = "the idle GPU is much hotter than the other idle GPUs of this machine"
    return warned(message, f"{own:.0f} C", f"<= {most:.0f} C")


@gpu_check(
    id="gpu-memory-temperature",
    title="The temperature of the GPU's memory is below its limit",
    reads="temperature: memory_temp, gpu_temp_max_mem_threshold",
    rule="FAIL above the limit. WARN within temperature-margin of it",
    limits=("temperature-margin",),
    source="GPUD",
    remedy="check fans, air flow, dust, and the room temperature",
    action=Action.DRAIN,
)
def memory_temperature(gpu: GpuView, machine: MachineView) -> Result:
    celsius = gpu.number(fields.MEMORY_TEMP)
    if celsius is not None and gpu.peek(fields.MEMORY_TEMP_MAX).state is not State.VALUE:
        return skipped("this GPU reports no limit for its memory temperature")
    most, margin = gpu.number(fields.MEMORY_TEMP_MAX), machine.limit("temperature-margin")
    if celsius is None or most is None:
        return passed()
    value, expected = f"{celsius:.0f} C", f"< {most:.0f} C"
    if celsius > most:
        return failed("the GPU's memory is too hot", value, expected)
    if celsius > most - margin:
        return warned("the GPU's memory is almost too hot", value, expected)
    return passed(value, expected)


@gpu_check(
    id="gpu-throttle",
    title="The GPU is not throttled now",
    reads="clocks_event_reasons (clocks_throttle_reasons before 535)",
    rule="FAIL for hardware slowdown, thermal slowdown or power brake. WARN for software thermal slowdown. Idle, "
    "power cap, clock settings and sync boost are normal",
    source="own; NVS and DCGM report the same bits",
    remedy="check the cooling (thermal), or the power supplies and the chassis's power limit (power brake)",
    action=Action.DRAIN,
)
def throttle(gpu: GpuView, _machine: MachineView) -> Result:
    hard = (fields.HW_THERMAL, fields.POWER_BRAKE, fields.HW_SLOWDOWN)
    active = [field.name for field in hard if gpu.word(field, *ACTIVE) == "active"]
    soft = gpu.word(fields.SW_THERMAL, *ACTIVE)
    if active:
        return failed("the hardware throttles the GPU: " + ", ".join(active), ", ".join(active), "none")
    if soft == "active":
        return warned("the driver throttles the GPU because of heat", "software thermal slowdown", "none")
    return passed("none", "none")


@gpu_check(
    id="gpu-throttle-time",
    title="The GPU was not throttled since the last run",
    reads="clocks_event_reasons_counters, history",
    rule="WARN when a thermal or power brake counter grew by more than throttle-microseconds",
    limits=("throttle-microseconds",),
    source="DCGM",
    remedy="check cooling and power under load",
    action=Action.NONE,
)
def throttle_time(gpu: GpuView, machine: MachineView) -> Result:
    group = f"gpu {gpu.peek(fields.UUID).text}"
    watched: tuple[Field, ...] = (fields.HW_THERMAL_US, fields.POWER_BRAKE_US, fields.SW_THERMAL_US)
    numbers = [(field, gpu.number(field)) for field in watched]
    # A missing counter is recorded as a gap, which turns this PASS into UNKNOWN.
    if not gpu.record.complete:
        return passed()
    grown, compared = [], False
    for field, number in numbers:
        delta = machine.delta(group, field.name, number or 0)
        compared = compared or delta is not None
        if delta and delta[0] > machine.limit("throttle-microseconds"):
            grown.append(f"{field.name} +{delta[0] / 1e6:.1f} s in {delta[1]:.0f} s")
    if not compared:
        return skipped("no earlier run in this boot for comparison")
    if grown:
        return warned("the GPU was throttled since the last run: " + "; ".join(grown), "; ".join(grown), "none")
    return passed("none", "none")


@gpu_check(
    id="gpu-performance-state",
    title="The GPU is not stuck in a low performance state",
    reads="performance_state, utilization: gpu, clocks_event_reasons: idle, power cap",
    rule="WARN at P8 or lower while it computes (utilisation above 0) and is not at the power cap",
    source="OpenPAI NodeGpuLowPerfState",
    remedy="reset the GPU after its jobs end",
    action=Action.RESET_GPU,
)
def performance(gpu: GpuView, _machine: MachineView) -> Result:
    state, idle = gpu.text(fields.PSTATE), gpu.word(fields.IDLE, *ACTIVE)
    number = state.removeprefix("P")
    if state and not number.isdecimal():
        return unknown(f"the performance state reads {state!r}", state)
    if state and idle == "not active" and int(number) >= 8:
        if gpu.word(fields.POWER_CAP, *ACTIVE) == "active":
            return passed(state, message="limited by the power cap (normal)")
        busy = gpu.number(fields.UTILISATION)
        if not busy:  # a loaded model that waits: some drivers do not call that idle
            return passed(f"{state}, {busy or 0:.0f} % used", "below P8 while busy")
        return warned(
            "the busy GPU is in a low performance state", state, "below P8 while busy", action=Action.RESET_GPU
        )
    return passed(state, "below P8 while busy")


@gpu_check(
    id="gpu-clock-limit",
    title="No setting reduces the GPU's clocks",
    reads="applications_clocks, default_applications_clocks, clocks, max_clocks, clocks_event_reasons",
    rule=(
        "WARN when the application clock is below the card's default, a locked clock keeps a busy GPU below it (where "
        "the card has none, below locked-clock-percent of the highest), or a busy GPU stays below it without a reason"
    ),
    limits=("locked-clock-percent",),
    source="AZ, GCM; own number",
    remedy="run nvidia-smi -i BUS_ID -rgc and -rac, unless you lowered the clocks on purpose",
    action=Action.NONE,
)
def clock_limit(gpu: GpuView, machine: MachineView) -> Result:
    wanted, default = gpu.peek(fields.APPLICATION_CLOCK).number, gpu.peek(fields.APPLICATION_DEFAULT).number
    if wanted is not None and default is not None and wanted < default:
        message = "the application clock is set below the card's default"
        return warned(message, f"{wanted:.0f} MHz", f"{default:.0f} MHz", action=Action.CONFIG)
    held = gpu.word(fields.CLOCK_SETTING, *ACTIVE)
    now, most = gpu.number(fields.SM_CLOCK), gpu.number(fields.SM_CLOCK_MAX)
    idle = gpu.peek(fields.IDLE).text.lower() == "active"  # an idle GPU is slow by itself
    if held == "active" and not idle and now is not None and most is not None:
        least = default if default is not None else most * machine.limit("locked-clock-percent") / 100
        if now < least:
            message = "a locked clock slows the busy GPU"
            return warned(message, f"{now:.0f} MHz", f">= {least:.0f} MHz", action=Action.CONFIG)
    least_at_work = (most or 0) * machine.limit("locked-clock-percent") / 100
    if gpu.works and now is not None and now < least_at_work and not _slowed(gpu):
        message = "the GPU runs at a fraction of its clock, and the driver reports no reason"
        remedy = "drain the node and reset the GPU. If the fault returns, check the card's power supply"
        value, expected = f"{now:.0f} MHz", f">= {least_at_work:.0f} MHz"
        return warned(message, value, expected, action=Action.DRAIN, remedy=remedy)
    return passed(f"setting {held or '?'}, {now or 0:.0f} of {most or 0:.0f} MHz")


def _slowed(gpu: GpuView) -> bool:
    """Whether the driver names a reason for a low clock."""
    reasons = (
        fields.POWER_CAP,
        fields.HW_SLOWDOWN,
        fields.HW_THERMAL,
        fields.POWER_BRAKE,
        fields.SW_THERMAL,
        fields.CLOCK_SETTING,
    )
    return any(gpu.peek(field).text.lower() == "active" for field in reasons)


@gpu_check(
    id="gpu-power",
    title="The power draw can be read",
    reads="gpu_power_readings (power_readings before 535)",
    rule="FAIL when it reads Unknown Error or ERR!",
    source="NVS POWER_UNREADABLE",
    remedy="reboot. If the fault returns, replace the card",
    action=Action.REBOOT,
)
def power(gpu: GpuView, _machine: MachineView) -> Result:
    reading = gpu.reading(fields.POWER)
    # A lost GPU cannot be read at all. That is a finding of its own, gpu-lost.
    if reading.state is State.ERROR and "is lost" not in reading.text.lower():
        action = Action.RESET_GPU if gpu.needs_reset else None
        return failed(f"the power draw cannot be read: {reading.text}", reading.text, "a number", action=action)
    watts = gpu.number(fields.POWER)
    return passed(f"{watts or 0:.0f} W")


@gpu_check(
    id="gpu-power-limit",
    title="The power limit is the card's default",
    reads="gpu_power_readings: current and default limit",
    rule="WARN more than power-limit-percent below the default",
    limits=("power-limit-percent",),
    source="own",
    remedy="run nvidia-smi -i BUS_ID -pl DEFAULT, unless you lowered the limit on purpose",
)
def power_limit(gpu: GpuView, machine: MachineView) -> Result:
    limit, default = gpu.number(fields.POWER_LIMIT), gpu.number(fields.POWER_DEFAULT)
    if limit is None or default is None:
        return passed()
    if limit < default * (1 - machine.limit("power-limit-percent") / 100):
        return warned(
            "the power limit is below the card's default", f"{limit:.0f} W", f"{default:.0f} W", action=Action.CONFIG
        )
    return passed(f"{limit:.0f} W", f">= {default:.0f} W")
