"""Heat, clocks and power."""

from __future__ import annotations

from pai_install.health.evidence import fields
from pai_install.health.evidence.fields import Field
from pai_install.health.evidence.reading import State
from pai_install.health.judge.check import GpuCheck
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.view import MachineView
from pai_install.health.model import Action, CheckText, Judgement, failed, passed, skipped, unknown, warned

ACTIVE = ("active", "not active")


def _temperature(gpu: GpuView, machine: MachineView) -> Judgement:
    celsius, margin = gpu.number(fields.TEMPERATURE), machine.limit("temperature-margin")
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
        return failed("the GPU is too hot and slows down", value, where)
    if left < margin:
        return warned("the GPU is nearly too hot", value, f">= {margin:.0f} C left")
    return passed(value, f">= {margin:.0f} C left")


def _memory_temperature(gpu: GpuView, machine: MachineView) -> Judgement:
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
        return warned("the GPU's memory is nearly too hot", value, expected)
    return passed(value, expected)


def _throttle(gpu: GpuView, _machine: MachineView) -> Judgement:
    hard = (fields.HW_THERMAL, fields.POWER_BRAKE, fields.HW_SLOWDOWN)
    active = [field.name for field in hard if gpu.word(field, *ACTIVE) == "active"]
    soft = gpu.word(fields.SW_THERMAL, *ACTIVE)
    if active:
        return failed("the hardware slows the GPU down: " + ", ".join(active), ", ".join(active), "none")
    if soft == "active":
        return warned("the driver slows the GPU down because of heat", "software thermal slowdown", "none")
    return passed("none", "none")


def _throttle_time(gpu: GpuView, machine: MachineView) -> Judgement:
    group = f"gpu {gpu.peek(fields.UUID).text}"
    watched: tuple[Field, ...] = (fields.HW_THERMAL_US, fields.POWER_BRAKE_US, fields.SW_THERMAL_US)
    numbers = [(field, gpu.number(field)) for field in watched]
    if gpu.missing():
        return passed()
    grown, compared = [], False
    for field, number in numbers:
        delta = machine.delta(group, field.name, number or 0)
        compared = compared or delta is not None
        if delta and delta[0] > machine.limit("throttle-microseconds"):
            grown.append(f"{field.name} +{delta[0] / 1e6:.1f} s in {delta[1]:.0f} s")
    if not compared:
        return skipped("no earlier run in this boot to compare with")
    if grown:
        return warned("the GPU was slowed down since the last run: " + "; ".join(grown), "; ".join(grown), "none")
    return passed("none", "none")


def _performance(gpu: GpuView, _machine: MachineView) -> Judgement:
    state, idle = gpu.text(fields.PSTATE), gpu.word(fields.IDLE, *ACTIVE)
    number = state.removeprefix("P")
    if state and not number.isdecimal():
        return unknown(f"the performance state reads {state!r}", state)
    if state and idle == "not active" and int(number) >= 8:
        if gpu.word(fields.POWER_CAP, *ACTIVE) == "active":
            return passed(state, message="held down by the power cap, which is normal")
        return warned("the GPU works in a low performance state", state, "below P8 while busy", action=Action.RESET_GPU)
    return passed(state, "below P8 while busy")


def _power(gpu: GpuView, _machine: MachineView) -> Judgement:
    reading = gpu.reading(fields.POWER)
    if reading.state is State.ERROR and "is lost" not in reading.text.lower():
        return failed(f"the power draw cannot be read: {reading.text}", reading.text, "a number")
    watts = gpu.number(fields.POWER)
    return passed(f"{watts or 0:.0f} W")


def _power_limit(gpu: GpuView, machine: MachineView) -> Judgement:
    limit, default = gpu.number(fields.POWER_LIMIT), gpu.number(fields.POWER_DEFAULT)
    if limit is None or default is None:
        return passed()
    if limit < default * (1 - machine.limit("power-limit-percent") / 100):
        return warned(
            "the power limit is below the card's default", f"{limit:.0f} W", f"{default:.0f} W", action=Action.CONFIG
        )
    return passed(f"{limit:.0f} W", f">= {default:.0f} W")


CHECKS = (
    GpuCheck(
        CheckText(
            "gpu-temperature",
            "The GPU is not too hot",
            "temperature: gpu_temp with gpu_temp_tlimit (Ada and newer) or gpu_temp_slow_threshold",
            "FAIL at the slowdown temperature; WARN within temperature-margin of it",
            "GPUD; own margin",
            "check fans, air flow, dust and the room's temperature",
            Action.DRAIN,
        ),
        _temperature,
    ),
    GpuCheck(
        CheckText(
            "gpu-memory-temperature",
            "The GPU's memory is not too hot",
            "temperature: memory_temp, gpu_temp_max_mem_threshold",
            "FAIL above the limit; WARN within temperature-margin of it",
            "GPUD",
            "check fans, air flow, dust and the room's temperature",
            Action.DRAIN,
        ),
        _memory_temperature,
    ),
    GpuCheck(
        CheckText(
            "gpu-throttle",
            "Nothing slows the GPU down now",
            "clocks_event_reasons (clocks_throttle_reasons before 535)",
            "FAIL for hardware slowdown, thermal slowdown or power brake; WARN for software thermal slowdown. Idle, "
            "power cap, clock settings and sync boost are normal",
            "own; NVS and DCGM report the same bits",
            "thermal: cooling. Power brake: power supplies and the chassis's power limit",
            Action.DRAIN,
        ),
        _throttle,
    ),
    GpuCheck(
        CheckText(
            "gpu-throttle-time",
            "Nothing has slowed the GPU down since the last run",
            "clocks_event_reasons_counters, history",
            "WARN when a thermal or power brake counter grew by more than throttle-microseconds",
            "DCGM",
            "check cooling and power while the machine is under load",
            Action.NONE,
        ),
        _throttle_time,
    ),
    GpuCheck(
        CheckText(
            "gpu-performance-state",
            "The GPU is not stuck in a low performance state",
            "performance_state, clocks_event_reasons: idle",
            "WARN at P8 or lower while neither idle nor at the power cap",
            "OpenPAI NodeGpuLowPerfState",
            "reset the GPU when its work is done",
            Action.RESET_GPU,
        ),
        _performance,
    ),
    GpuCheck(
        CheckText(
            "gpu-power",
            "The power draw can be read",
            "gpu_power_readings (power_readings before 535)",
            "FAIL when it reads Unknown Error or ERR!",
            "NVS POWER_UNREADABLE",
            "reboot; replace the card when it returns",
            Action.REBOOT,
        ),
        _power,
    ),
    GpuCheck(
        CheckText(
            "gpu-power-limit",
            "The power limit is the card's default",
            "gpu_power_readings: current and default limit",
            "WARN more than power-limit-percent below the default",
            "own",
            "nvidia-smi -i BUS_ID -pl DEFAULT, if nobody lowered it on purpose",
            Action.CONFIG,
        ),
        _power_limit,
    ),
)
