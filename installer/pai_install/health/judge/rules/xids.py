"""What the kernel log says of GPUs (Xid) and of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pai_install.checks.result import Result, failed, passed, warned
from pai_install.checks.verdict import Action, Verdict
from pai_install.health.evidence import fields
from pai_install.health.evidence.parse.kernel_log import LogKind
from pai_install.health.judge.check import machine_check
from pai_install.health.judge.view import MachineView
from pai_install.health.judge.xid import APPLICATION, FOLLOWERS, Incident, XidMeaning, meaning_of


def _worst(incident: Incident, machine: MachineView) -> tuple[XidMeaning, XidMeaning]:
    """(meaning of the cause, gravest meaning among the members)."""
    meanings = [meaning_of(xid, machine.catalogue) for xid in incident.members]
    grave = max(meanings, key=lambda meaning: (_RANK[meaning.verdict], meaning.action.rank))
    return meaning_of(incident.cause, machine.catalogue), grave


_RANK = {Verdict.PASS: 0, Verdict.SKIP: 0, Verdict.UNKNOWN: 1, Verdict.WARN: 2, Verdict.FAIL: 3}


@machine_check(
    id="gpu-xid",
    title="The driver has reported no fault of a GPU (Xid)",
    reads="kernel log of this boot",
    rule="by number, see the Xid table; a burst is one incident with its first cause; FAIL within xid-window-hours, "
    "WARN later in the same boot; application faults pass unless several processes hit them",
    limits=("xid-window-hours", "xid-merge-seconds"),
    source="XC; GPUD, NHV, DCGM where they differ",
    remedy="see the Xid table",
    action=Action.RESET_GPU,
    gpus_only=True,
)
def xid_incidents(machine: MachineView) -> Iterator[Result]:
    incidents = machine.incidents
    quiet = True
    for bus_id in sorted({incident.bus_id for incident in incidents}):
        of_gpu = [incident for incident in incidents if incident.bus_id == bus_id]
        quiet = False
        yield _of_gpu(bus_id, of_gpu, machine)
    if quiet:
        yield passed("none", "none")


def _of_gpu(bus_id: str, incidents: Sequence[Incident], machine: MachineView) -> Result:
    device = _device(bus_id, machine)
    judged = [(incident, *_worst(incident, machine)) for incident in incidents]
    incident, cause, grave = max(judged, key=lambda item: (_RANK[item[2].verdict], item[0].last_time or 0))
    value = "; ".join(_describe(item, meaning) for item, meaning, _ in judged[-4:])
    age_h = (machine.collected_at - incident.last_time) / 3600 if incident.last_time is not None else 0.0
    message = f"Xid {incident.cause.number}: {cause.name}"
    remedy = cause.remedy or grave.remedy
    if grave.verdict is Verdict.FAIL and age_h > machine.limit("xid-window-hours"):
        return warned(
            f"{message}, {age_h:.0f} h ago in this boot",
            value,
            "none",
            device=device,
            action=grave.action,
            remedy=remedy,
        )
    if grave.verdict is Verdict.FAIL:
        return failed(message, value, "none", device=device, action=grave.action, remedy=remedy)
    if grave.verdict is Verdict.WARN:
        return warned(message, value, "none", device=device, action=grave.action, remedy=remedy)
    own = [item.cause for item, meaning, _ in judged if meaning.kind == APPLICATION]
    jobs = {xid.pid for xid in own if xid.pid and xid.number not in FOLLOWERS}
    if len(jobs) > 1:
        first = next(meaning for _, meaning, _ in judged if meaning.kind == APPLICATION)
        return warned(
            f"Xid {first.number}: {first.name} in {len(jobs)} different processes", value, "none", device=device
        )
    whose = " (application)" if cause.kind == APPLICATION else ""
    return passed(value, "nothing but applications' own faults", device=device, message=f"{message}{whose}")


def _device(bus_id: str, machine: MachineView) -> str:
    """The bus id as nvidia-smi has it: Xid lines leave the function out."""
    slot = bus_id.partition(".")[0]
    return next((gpu.bus_id for gpu in machine.gpus if gpu.bus_id.partition(".")[0] == slot), bus_id)


def _describe(incident: Incident, cause: XidMeaning) -> str:
    others = [str(number) for number in incident.numbers if number != incident.cause.number]
    process = incident.cause.process or (f"pid {incident.cause.pid}" if incident.cause.pid else "")
    more = f", then {', '.join(others)}" if others else ""
    count = f" x{len(incident.members)}" if len(incident.members) > 1 else ""
    return f"{incident.cause.number} {cause.name}{count}{more}" + (f" ({process})" if process else "")


def _fatal_and_new(incidents: Sequence[Incident], machine: MachineView) -> list[Incident]:
    """Those that FAIL and came within the window; without times, all that FAIL."""
    return [
        incident
        for incident in incidents
        if _worst(incident, machine)[1].verdict is Verdict.FAIL and machine.recent(incident.last_time)
    ]


@machine_check(
    id="gpu-xid-recurrence",
    title="No fault comes back after a reboot",
    reads="kernel log of this boot",
    rule="FAIL for the same fatal Xid on the same card in xid-recurrences boots, this one in xid-window-hours, or "
    "more than xid-per-day fatal ones in those hours",
    limits=("xid-window-hours", "xid-recurrences", "xid-per-day"),
    source="GPUD, OCI",
    remedy="replace the card; the history is the evidence for the vendor",
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
        uuid = uuids.get(device, device)
        boots = {boot for card, number, boot, _ in past if card == uuid and number == incident.cause.number}
        times = len(boots | {machine.boot_id})
        same_day = sum(item.bus_id == incident.bus_id for item in fatal)
        if times >= most:
            found = True
            yield failed(
                f"Xid {incident.cause.number} in {times} boots of this card: it is the hardware",
                times,
                f"< {most:.0f}",
                device=device,
            )
        elif same_day > per_day:
            found = True
            yield failed("several fatal incidents in one day", same_day, f"<= {per_day:.0f}", device=device)
    if not found:
        yield passed("none", "none")


def _events(
    machine: MachineView,
    kinds: tuple[LogKind, ...],
    fatal: str,
    *,
    warn_only: bool = False,
    action: Action | None = None,
) -> Result:
    events = machine.events(*kinds)
    recent = any(machine.recent(event.time) for event in events)
    if not events:
        return passed("none", "none")
    value = f"{len(events)} lines, last: {events[-1].text}"
    if warn_only and not recent:
        return passed(value, "none lately", message="earlier in this boot, not lately")
    if recent and not warn_only:
        return failed(fatal, value, "none", action=action)
    return warned(fatal, value, "none", action=action)


@machine_check(
    id="nvswitch-sxid",
    title="The NVSwitches report no errors (SXid)",
    reads="kernel log of this boot",
    rule="FAIL for a fatal SXid within xid-window-hours, WARN later in the same boot and for others within them",
    limits=("xid-window-hours",),
    source="GPUD",
    remedy="reboot the machine; replace the board when it returns",
    action=Action.REBOOT,
    gpus_only=True,
)
def sxid(machine: MachineView) -> Result:
    fatal = _events(machine, (LogKind.SXID_FATAL,), "an NVSwitch reports a fatal error")
    if fatal.verdict is not Verdict.PASS:
        return fatal
    return _events(machine, (LogKind.SXID,), "an NVSwitch reports errors", warn_only=True)


@machine_check(
    id="kernel-machine-checks",
    title="No machine checks",
    reads="kernel log of this boot",
    rule="WARN when there are any within xid-window-hours",
    limits=("xid-window-hours",),
    source="own",
    remedy="find the failing module or processor with `ras-mc-ctl --summary` or the BMC's log",
    action=Action.DRAIN,
)
def machine_checks(machine: MachineView) -> Result:
    return _events(machine, (LogKind.MACHINE_CHECK,), "the processor or memory reports hardware errors", warn_only=True)


@machine_check(
    id="kernel-hung-tasks",
    title="No task hangs in the kernel",
    reads="kernel log of this boot",
    rule="WARN when there are any within xid-window-hours",
    limits=("xid-window-hours",),
    source="NPD",
    remedy="look at what the task waits for; reboot when it does not end",
    action=Action.REBOOT,
)
def hung(machine: MachineView) -> Result:
    return _events(machine, (LogKind.HUNG_TASK,), "tasks hang in the kernel", warn_only=True)


@machine_check(
    id="kernel-filesystems",
    title="No disk or file system errors",
    reads="kernel log of this boot",
    rule="FAIL within xid-window-hours, WARN later in the same boot",
    limits=("xid-window-hours",),
    source="NPD",
    remedy="save the data, check the disk (smartctl -a), repair or replace it",
    action=Action.DRAIN,
)
def filesystems(machine: MachineView) -> Result:
    return _events(machine, (LogKind.FILESYSTEM,), "a disk or file system reports errors")


@machine_check(
    id="kernel-oom",
    title="The machine did not run out of memory",
    reads="kernel log of this boot",
    rule="WARN when it did within xid-window-hours; a container at its own limit is no case",
    limits=("xid-window-hours",),
    source="NPD",
    remedy="give jobs memory limits, or the machine more memory",
    action=Action.NONE,
)
def oom(machine: MachineView) -> Result:
    return _events(machine, (LogKind.OUT_OF_MEMORY,), "the machine ran out of memory", warn_only=True)
