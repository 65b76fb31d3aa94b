"""GPU errors of the driver in the kernel log: Xids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from pai_install.checks.result import Result, failed, passed, warned
from pai_install.checks.verdict import Action, Verdict
from pai_install.health.evidence import fields
from pai_install.health.evidence.parse.kernel_log import LogKind, Xid
from pai_install.health.judge.check import machine_check
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.view import MachineView
from pai_install.health.judge.xid import APPLICATION, FOLLOWERS, Incident
from pai_install.system.words import spoken_time

_CLEANUP, _EXCEPTION = 45, 13
# words of a line that a reset or a reboot activates -> what nvidia-smi says of it
_ACTIVATED = {
    "Row": (fields.REMAP_PENDING,),
    "page": (fields.RETIRED_PENDING, fields.RETIRED_PENDING_OLD),
    "Bank": (fields.BANK_REMAP_PENDING,),
    "Channel": (fields.CHANNEL_REPAIR,),
    "LTS": (fields.CHANNEL_REPAIR,),
    "TPC": (fields.TPC_REPAIR,),
}
_ONE_USE_S = 3600
_PLACE = re.compile(r"GPC \d+, TPC \d+, SM \d+")


@machine_check(
    id="gpu-xid",
    title="The driver reports no GPU fault (Xid)",
    reads="kernel log of this boot",
    rule=(
        "by number (see the Xid table). A burst is one incident, judged by its worst Xid. FAIL within "
        "xid-window-hours. WARN later in the same boot. A later Xid 154 with None ends an incident. Application "
        "faults pass unless several programs hit them within xid-window-hours. WARN for a repair that waits for a "
        "reset or reboot, and where the driver's watchdog alone calls a GPU locked"
    ),
    limits=("xid-window-hours", "xid-merge-seconds"),
    source="XC; GPUD, NHV, DCGM where they differ",
    remedy="follow the Xid table",
    action=Action.RESET_GPU,
    gpus_only=True,
)
def xid_incidents(machine: MachineView) -> Iterator[Result]:
    incidents = machine.incidents
    for bus_id in sorted({incident.bus_id for incident in incidents}):
        yield _of_gpu(bus_id, [incident for incident in incidents if incident.bus_id == bus_id], machine)
    locked = [event for event in machine.events(LogKind.GPU_LOCKED) if machine.recent(event.time)]
    if locked and not incidents:
        yield warned("the driver's watchdog calls a GPU locked", locked[-1].text, "none", action=Action.RESET_GPU)
    elif not incidents:
        yield passed("none", "none")


def _of_gpu(bus_id: str, incidents: Sequence[Incident], machine: MachineView) -> Result:
    device = _device(bus_id, machine)
    over = _is_well(device, machine)
    open_ones = [incident for incident in incidents if not (over and incident.ended)]
    value = "; ".join(_describe(incident) for incident in incidents[-4:])
    if not open_ones:
        worst = max(incidents, key=lambda item: item.gravest.gravity)
        message = f"{_message(worst)} (resolved since then, Xid 154: None)"
        return passed(value, "nothing open", device=device, message=message)
    incident = max(open_ones, key=lambda item: (item.gravest.gravity[0], item.last_time or 0))
    grave, message = incident.gravest, _message(incident)
    remedy = incident.meaning.remedy or grave.remedy
    # A line without time stamp counts as new: it must not hide a fault.
    age_h = (machine.collected_at - incident.last_time) / 3600 if incident.last_time is not None else 0.0
    if grave.verdict is Verdict.FAIL and age_h <= machine.limit("xid-window-hours"):
        return failed(message, value, "none", device=device, action=grave.action, remedy=remedy)
    if grave.verdict is Verdict.FAIL:
        message += f", {age_h:.0f} h ago in this boot"
    if grave.verdict in (Verdict.FAIL, Verdict.WARN):
        return warned(message, value, "none", device=device, action=grave.action, remedy=remedy)
    if waits := _waits_for(open_ones, device, machine):
        remedy = "reset the GPU when it is idle"
        if waits is Action.REBOOT:
            remedy = "reboot the machine at its next idle moment"
        return warned(message, value, "none", device=device, action=waits, remedy=remedy)
    if several := _several_processes([item for item in open_ones if machine.recent(item.last_time)]):
        return warned(several, value, "none", device=device)
    scope = " (application)" if incident.meaning.kind == APPLICATION else ""
    return passed(value, "nothing but applications' own faults", device=device, message=f"{message}{scope}")


def _message(incident: Incident) -> str:
    """Returns the cause and the preceding Xids."""
    first = next((xid.number for xid in incident.members if xid.number not in FOLLOWERS), incident.cause.number)
    after = f", after Xid {first}" if first != incident.cause.number else ""
    return f"Xid {incident.cause.number}: {incident.meaning.name}{after}"


def _waits_for(incidents: Sequence[Incident], device: str, machine: MachineView) -> Action | None:
    """Returns the action that a row, page, bank, or channel waits for, if the driver does not deny it."""
    texts = [xid.text for incident in incidents for xid in incident.members if "to activate" in xid.text]
    gpu = next((gpu for gpu in machine.gpus if gpu.bus_id == device), None)
    waiting = [text for text in texts if gpu is None or not _denied(text, gpu)]
    if not waiting:
        return None
    return Action.REBOOT if any("node reboot to activate" in text for text in waiting) else Action.RESET_GPU


def _denied(text: str, gpu: GpuView) -> bool:
    """Whether nvidia-smi says that nothing of the kind that a line speaks of is pending."""
    kinds = [field for word, row in _ACTIVATED.items() if word in text for field in row]
    return any(gpu.peek(field).text.lower() == "no" for field in kinds)


def _several_processes(incidents: Sequence[Incident]) -> str:
    """Returns a warning if application faults hit several processes, or ''. Xid 45 is only a cleanup.

    One program that fails again and again within an hour is at fault itself, unless each failure is on the same SM.
    """
    own = [item for item in incidents if item.meaning.kind == APPLICATION]
    members = [xid for item in own for xid in item.members if xid.number != _CLEANUP]
    processes = {xid.pid: xid for xid in reversed(members) if xid.pid.isdecimal()}
    exceptions = [match.group() for xid in members if xid.number == _EXCEPTION and (match := _PLACE.search(xid.text))]
    # a kernel of one block runs on the same SM each time, so two failures of one program there say little
    one_place = len(set(exceptions)) == 1 and len(exceptions) >= len(processes) > 2
    if not one_place and _uses(processes.values()) < 2:
        return ""
    same = f", each time on {exceptions[0]}: is it the hardware?" if one_place else ""
    return f"Xid {own[0].cause.number}: {own[0].meaning.name} in {len(processes)} different processes{same}"


def _uses(processes: Iterable[Xid]) -> int:
    """Counts failed processes. Those of one program within an hour of another count once."""
    count, last = 0, dict[str, float]()
    for xid in sorted(processes, key=lambda xid: xid.time or 0.0):
        at = xid.time or 0.0
        count += xid.process not in last or at - last[xid.process] > _ONE_USE_S
        last[xid.process] = at
    return count


def _is_well(device: str, machine: MachineView) -> bool:
    """Whether nvidia-smi shows this GPU, and neither error words nor its recovery action ask for anything."""
    gpu = next((gpu for gpu in machine.gpus if gpu.bus_id == device), None)
    return gpu is not None and not gpu.errors and not gpu.recovery_action


def _device(bus_id: str, machine: MachineView) -> str:
    """The bus id as nvidia-smi has it: Xid lines leave the function out."""
    slot = bus_id.partition(".")[0]
    return next((gpu.bus_id for gpu in machine.gpus if gpu.bus_id.partition(".")[0] == slot), bus_id)


def _describe(incident: Incident) -> str:
    """Describes time, cause, and other Xids: "2026-11-24 09:57:31 UTC: 48 double-bit ECC error x4, with 45, 63
    (python)".
    """
    others = [str(number) for number in incident.numbers if number != incident.cause.number]
    process = incident.cause.process or (f"pid {incident.cause.pid}" if incident.cause.pid else "")
    more = f", with {', '.join(others)}" if others else ""
    count = f" x{len(incident.members)}" if len(incident.members) > 1 else ""
    when = f"{spoken_time(incident.last_time)}: " if incident.last_time is not None else ""
    what = f"{incident.cause.number} {incident.meaning.name}{count}{more}"
    return when + what + (f" ({process})" if process else "")


def _fatal_and_new(incidents: Sequence[Incident], machine: MachineView) -> list[Incident]:
    """Returns incidents with FAIL within the time window. Without time stamps, all of them."""
    return [
        incident
        for incident in incidents
        if incident.gravest.verdict is Verdict.FAIL and machine.recent(incident.last_time)
    ]


@machine_check(
    id="gpu-xid-recurrence",
    title="No fault returns after a reboot",
    reads="kernel log of this boot",
    rule="FAIL for the same fatal Xid of a card in xid-recurrences boots, the last within xid-window-hours, or for "
    "more than xid-per-day fatal Xids in that time",
    limits=("xid-window-hours", "xid-recurrences", "xid-per-day"),
    source="GPUD, OCI",
    remedy="replace the card. Send the history to the vendor as evidence",
    action=Action.RMA,
    gpus_only=True,
)
def recurrence(machine: MachineView) -> Iterator[Result]:
    uuids = {gpu.bus_id: gpu.peek(fields.UUID).text for gpu in machine.gpus}
    past = {
        (item.uuid, item.xid, item.boot_id, item.time) for snapshot in machine.history for item in snapshot.incidents
    }
    most, per_day = machine.limit("xid-recurrences"), machine.limit("xid-per-day")
    found = False
    fatal = _fatal_and_new(machine.incidents, machine)
    for incident in fatal:
        device = _device(incident.bus_id, machine)
        # A card that has fallen off the bus no longer has a UUID. Its slot takes the place.
        uuid = uuids.get(device, device)
        number, times = _most_often(incident, {(item[1], item[2]) for item in past if item[0] == uuid}, machine)
        same_day = sum(item.bus_id == incident.bus_id for item in fatal)
        if times >= most:
            found = True
            yield failed(
                f"Xid {number} in {times} boots of this card: the hardware is faulty",
                times,
                f"< {most:.0f}",
                device=device,
            )
        elif same_day > per_day:
            found = True
            yield failed("several fatal incidents in one day", same_day, f"<= {per_day:.0f}", device=device)
    if not found:
        yield passed("none", "none")


def _most_often(incident: Incident, past: set[tuple[int, str]], machine: MachineView) -> tuple[int, int]:
    """Returns (fatal Xid of the incident, number of boots of this card with it) for the most frequent Xid.

    past: (Xid, boot) of the card. Application faults in the same burst never count.
    """
    boots = {number: {boot for xid, boot in past if xid == number} | {machine.boot_id} for number in incident.fatal}
    counted = {number: len(seen) for number, seen in boots.items()}
    worst = max(counted, key=lambda number: counted[number], default=incident.cause.number)
    return worst, counted.get(worst, 1)
