"""GPU memory: ECC errors, row remapping, page retirement."""

from __future__ import annotations

import re
from typing import Any

from pai_install.checks.evidence import NotObservedError
from pai_install.checks.result import Result, failed, passed, skipped, unknown, warned
from pai_install.checks.verdict import Action
from pai_install.health.evidence import fields
from pai_install.health.evidence.fields import Field
from pai_install.health.evidence.reading import State, parse_reading
from pai_install.health.judge.check import gpu_check
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.view import MachineView

YES_NO = ("yes", "no")
ON_OFF = ("enabled", "disabled")
_LAST_BLACKLIST = 430  # the newest branch whose XML calls a pending retirement pending_blacklist alone
_CONTAINED = re.compile(r"kubepods|docker|containerd|crio|libpod|slurm|lxc")


@gpu_check(
    id="gpu-ecc-mode",
    title="ECC is on and has no pending change",
    reads="ecc_mode/current_ecc, pending_ecc",
    rule="WARN when off on a data centre GPU, or changed after the next reboot. SKIP for a card without ECC",
    source="GPUD, own",
    remedy="run nvidia-smi -i BUS_ID -e 1, and reboot",
)
def ecc_mode(gpu: GpuView, _machine: MachineView) -> Result:
    current, pending = gpu.word(fields.ECC_CURRENT, *ON_OFF), gpu.word(fields.ECC_PENDING, *ON_OFF)
    if current and pending and current != pending:
        return warned(f"ECC is {current}, {pending} after the next reboot", current, pending, action=Action.REBOOT)
    if current == "disabled" and not gpu.traits.consumer:
        return warned("ECC is off: memory errors are not detected", current, "enabled", action=Action.CONFIG)
    return passed(current, "enabled")


def _counts_bits(gpu: GpuView) -> bool:
    """Whether it counts single and double bit errors, as all up to Volta do, and not those of SRAM and DRAM."""
    return gpu.traits.generation in ("Kepler", "Maxwell", "Pascal", "Volta")


def _uncorrected_fields(gpu: GpuView) -> tuple[Field, ...]:
    if _counts_bits(gpu):
        return (fields.DOUBLE_BIT,)
    split = any(gpu.peek(field).text for field in (fields.SRAM_UNC_PARITY, fields.SRAM_UNC_SECDED))
    if split:
        return (fields.SRAM_UNC_PARITY, fields.SRAM_UNC_SECDED, fields.DRAM_UNC)
    if gpu.peek(fields.DOUBLE_BIT).text:
        return (fields.DOUBLE_BIT,)
    return (fields.SRAM_UNC, fields.DRAM_UNC)


@gpu_check(
    id="gpu-ecc-uncorrected",
    title="No uncorrected memory errors since the last reset",
    reads="ecc_errors/volatile: SRAM and DRAM uncorrectable (parity, SEC-DED, total or double bit)",
    rule="FAIL above 0",
    source="GCM, AZ, NVS",
    remedy="drain the machine, reset the GPU, and check gpu-remap-failed. If errors return, run the field diagnostic",
    action=Action.RESET_GPU,
)
def uncorrected(gpu: GpuView, _machine: MachineView) -> Result:
    numbers = [(field, gpu.number(field)) for field in _uncorrected_fields(gpu)]
    bad = [f"{field.name} {number:.0f}" for field, number in numbers if number]
    if bad:
        return failed("uncorrected memory errors since the last reset: " + ", ".join(bad), "; ".join(bad), 0)
    return passed(0, 0)


@gpu_check(
    id="gpu-ecc-sram-threshold",
    title="SRAM errors are below the replacement threshold",
    reads="ecc_errors/aggregate/sram_threshold_exceeded",
    rule="FAIL when Yes",
    source="MEM RMA policy",
    remedy="run the field diagnostic and replace the card",
    action=Action.RMA,
)
def sram_threshold(gpu: GpuView, _machine: MachineView) -> Result:
    word = gpu.word(fields.SRAM_THRESHOLD, *YES_NO)
    if word == "yes":
        return failed("the GPU reports more SRAM errors than the replacement threshold", word, "no")
    return passed(word, "no")


@gpu_check(
    id="gpu-ecc-lifetime",
    title="Few uncorrected errors in the lifetime of the card",
    reads="ecc_errors/aggregate",
    rule="WARN above ecc-aggregate-dram or ecc-aggregate-sram. Never FAIL, because remapped rows remain counted",
    limits=("ecc-aggregate-dram", "ecc-aggregate-sram"),
    source="DCGM, MEM, ML",
    remedy="watch the counter. Request a replacement if it grows",
    action=Action.NONE,
)
def aggregate(gpu: GpuView, machine: MachineView) -> Result:
    if gpu.peek(fields.AGG_DOUBLE_BIT).text:
        dram, sram = gpu.number(fields.AGG_DOUBLE_BIT), 0.0
    else:
        dram = gpu.number(fields.AGG_DRAM_UNC)
        split = gpu.peek(fields.AGG_SRAM_PARITY).text or gpu.peek(fields.AGG_SRAM_SECDED).text
        names = (fields.AGG_SRAM_PARITY, fields.AGG_SRAM_SECDED) if split else (fields.AGG_SRAM_UNC,)
        sram = sum(gpu.number(field) or 0 for field in names)
    most_dram, most_sram = machine.limit("ecc-aggregate-dram"), machine.limit("ecc-aggregate-sram")
    value = f"DRAM {dram or 0:.0f}, SRAM {sram:.0f}"
    if (dram or 0) > most_dram or sram > most_sram:
        return warned(
            "many uncorrected memory errors in the lifetime of the card",
            value,
            f"<= {most_dram:.0f}, <= {most_sram:.0f}",
        )
    return passed(value, f"<= {most_dram:.0f}, <= {most_sram:.0f}")


@gpu_check(
    id="gpu-ecc-corrected",
    title="Corrected errors are not unusually many",
    reads="ecc_errors/aggregate: DRAM and SRAM correctable (single bit before Turing)",
    rule="WARN above ecc-corrected-dram or ecc-corrected-sram",
    limits=("ecc-corrected-dram", "ecc-corrected-sram"),
    source="AZ",
    remedy="watch the rate. Corrected errors are harmless but may precede uncorrected errors",
    action=Action.NONE,
)
def corrected(gpu: GpuView, machine: MachineView) -> Result:
    if _counts_bits(gpu):
        dram, sram = gpu.number(fields.AGG_SINGLE_BIT), 0.0
    else:
        dram, sram = gpu.number(fields.AGG_DRAM_CORR), gpu.number(fields.AGG_SRAM_CORR) or 0.0
    most_dram, most_sram = machine.limit("ecc-corrected-dram"), machine.limit("ecc-corrected-sram")
    value = f"DRAM {dram or 0:.0f}, SRAM {sram:.0f}"
    expected = f"<= {most_dram:.0f}, <= {most_sram:.0f}"
    if (dram or 0) > most_dram or sram > most_sram:
        return warned("unusually many corrected memory errors", value, expected)
    return passed(value, expected)


@gpu_check(
    id="gpu-remap-pending",
    title="No row remap is pending",
    reads="remapped_rows/remapped_row_pending, kernel log",
    rule="WARN when Yes. FAIL together with Xid 48 or 95",
    source="MEM, AZ, GPUD",
    remedy="reset the GPU when it is idle: nvidia-smi --gpu-reset -i BUS_ID",
    action=Action.RESET_GPU,
)
def remap_pending(gpu: GpuView, machine: MachineView) -> Result:
    word = gpu.word(fields.REMAP_PENDING, *YES_NO)
    if word != "yes":
        return passed(word, "no")
    recent = {number for incident in _incidents(machine) if incident[0] == gpu.bus_id for number in incident[1]}
    if recent & {48, 95}:
        return failed("a row remap is pending after an uncorrected error", word, "no")
    return warned("a row remap is pending: reset the GPU when it is idle", word, "no", action=Action.RESET_GPU)


def _incidents(machine: MachineView) -> list[tuple[str, tuple[int, ...]]]:
    try:
        return [(incident.bus_id, incident.numbers) for incident in machine.incidents]
    except NotObservedError:
        return []


@gpu_check(
    id="gpu-remap-failed",
    title="No row remap has failed",
    reads="remapped_rows/remapped_row_failure",
    rule="FAIL when Yes",
    source="MEM: 8 uncorrectable remaps in a bank, or 512 in all",
    remedy="run the field diagnostic and replace the card",
    action=Action.RMA,
)
def remap_failed(gpu: GpuView, _machine: MachineView) -> Result:
    word = gpu.word(fields.REMAP_FAILED, *YES_NO)
    if word == "yes":
        return failed("a memory row could not be remapped: the card has no spare rows left there", word, "no")
    return passed(word, "no")


@gpu_check(
    id="gpu-remap-banks",
    title="Every memory bank has spare rows",
    reads="remapped_rows/row_remapper_histogram, remapped_banks/bank_remapper_histogram",
    rule="FAIL when a bank has none. WARN when a bank has few",
    source="MEM, own",
    remedy="plan the replacement of the card",
    action=Action.RMA,
)
def banks(gpu: GpuView, _machine: MachineView) -> Result:
    none, low = gpu.number(fields.BANKS_NONE), gpu.number(fields.BANKS_LOW)
    if gpu.peek(fields.BANK_GROUPS_NONE).text and (groups := gpu.number(fields.BANK_GROUPS_NONE)):
        return failed(f"{groups:.0f} groups of memory banks have no spare bank left", f"{groups:.0f}", 0)
    if none:
        return failed(f"{none:.0f} memory banks have no spare rows left", f"{none:.0f}", 0)
    if low:
        return warned(f"{low:.0f} memory banks have few spare rows left", f"{low:.0f}", 0)
    return passed("none 0, low 0", 0)


@gpu_check(
    id="gpu-repair-pending",
    title="No channel, TPC, or bank repair is pending",
    reads="ecc_errors/channel_repair_pending, tpc_repair_pending, remapped_banks/bank_remapper_pending",
    rule="WARN when Yes",
    source="MEM",
    remedy="reset the GPU when it is idle",
    action=Action.RESET_GPU,
)
def repair(gpu: GpuView, _machine: MachineView) -> Result:
    repairs = [fields.CHANNEL_REPAIR, fields.TPC_REPAIR]
    repairs += [fields.BANK_REMAP_PENDING] if gpu.peek(fields.BANK_REMAP_PENDING).text else []
    words = {field.name: gpu.word(field, *YES_NO) for field in repairs}
    pending = [name for name, word in words.items() if word == "yes"]
    if pending:
        return warned(f"{' and '.join(pending)}: reset the GPU", "yes", "no", action=Action.RESET_GPU)
    return passed("no", "no")


@gpu_check(
    id="gpu-unrepairable-memory",
    title="No unrepairable memory",
    reads="ecc_errors/unrepairable_memory",
    rule="FAIL when Yes",
    source="MEM",
    remedy="replace the card",
    action=Action.RMA,
)
def unrepairable(gpu: GpuView, _machine: MachineView) -> Result:
    word = gpu.word(fields.UNREPAIRABLE, *YES_NO)
    if word == "yes":
        return failed("the GPU reports memory that cannot be repaired", word, "no")
    return passed(word, "no")


@gpu_check(
    id="gpu-retired-pages",
    title="Few retired memory pages (before Ampere)",
    reads="retired_pages: counts and pending",
    rule="FAIL pending, or at retired-pages-fail of 64. WARN above retired-pages-warn",
    limits=("retired-pages-warn", "retired-pages-fail"),
    source="DCGM, GCM",
    remedy="reboot to retire pending pages. Replace the card when the pages run out",
    action=Action.REBOOT,
)
def retired(gpu: GpuView, machine: MachineView) -> Result:
    older = 0 < gpu.driver_major <= _LAST_BLACKLIST and not gpu.peek(fields.RETIRED_PENDING).text
    pending = gpu.word(fields.RETIRED_PENDING_OLD if older else fields.RETIRED_PENDING, *YES_NO)
    single, double = gpu.number(fields.RETIRED_SINGLE), gpu.number(fields.RETIRED_DOUBLE)
    pages = (single or 0) + (double or 0)
    most, some = machine.limit("retired-pages-fail"), machine.limit("retired-pages-warn")
    value = f"{pages:.0f} pages, pending {pending or '?'}"
    if pages >= most:
        return failed(f"{pages:.0f} memory pages are retired of at most 64", value, f"< {most:.0f}", action=Action.RMA)
    if pending == "yes":
        return failed("a memory page retirement is pending: reboot", value, "no", action=Action.REBOOT)
    if pages > some:
        return warned(f"{pages:.0f} memory pages are retired", value, f"<= {some:.0f}")
    return passed(value, f"<= {some:.0f}, no")


# the size in their names is that of the processor's memory: "NVIDIA GH200 480GB" has a GPU with 96 GB
_SUPERCHIP = re.compile(r"\bG[HB]\d00\b")


@gpu_check(
    id="gpu-memory-size",
    title="The GPU has the memory of its model",
    reads="fb_memory_usage/total, product_name, baseline",
    rule="FAIL below the baseline (or the size in the product name, except for a superchip) less memory-short-percent",
    limits=("memory-short-percent",),
    source="Xid 168; own",
    remedy="reset the GPU. Replace it if memory is still missing",
    action=Action.RESET_GPU,
)
def memory_size(gpu: GpuView, machine: MachineView) -> Result:
    total = gpu.number(fields.MEMORY_TOTAL)
    product = gpu.peek(fields.PRODUCT).text
    named = None if _SUPERCHIP.search(product) else re.search(r"(\d+) ?GB\b", product)
    accepted = gpu.baseline.memory_mib if gpu.baseline else None
    if accepted is None and named:
        accepted = float(named.group(1)) * 1e9 / 2**20
    if accepted is None:
        return skipped(
            "no memory size in the product name or a baseline: run `health baseline --accept` to make a baseline"
        )
    least = accepted * (1 - machine.limit("memory-short-percent") / 100)
    if total is not None and total < least:
        return failed("the GPU has less memory than expected", f"{total:.0f} MiB", f">= {least:.0f} MiB")
    return passed(f"{total or 0:.0f} MiB", f">= {least:.0f} MiB")


@gpu_check(
    id="gpu-memory-leak",
    title="No memory is in use without a process",
    reads="fb_memory_usage/used, processes, utilization: gpu, performance_state",
    rule="FAIL above memory-leak-mib without a process. UNKNOWN while the GPU computes for a process that is not "
    "shown. SKIP for a vGPU",
    limits=("memory-leak-mib",),
    source="GCM, NKP 12; own number",
    remedy="find the process with `fuser -v /dev/nvidia*`. If there is none, reset the GPU or reboot",
    action=Action.REBOOT,
)
def leak(gpu: GpuView, machine: MachineView) -> Result:
    used = gpu.number(fields.MEMORY_USED)
    if used is None:
        return passed(used)
    if gpu.traits.virtual:
        return skipped("a vGPU counts memory reserved by its host as used")
    if gpu.gpu.processes:
        return passed(f"{used:.0f} MiB", message="in use")
    most = machine.limit("memory-leak-mib")
    return _unowned(gpu, used, most) if used > most else passed(f"{used:.0f} MiB", f"<= {most:.0f} MiB")


def _unowned(gpu: GpuView, used: float, most: float) -> Result:
    """Returns the result for used memory that belongs to no process in nvidia-smi."""
    value = f"{used:.0f} MiB"
    if gap := gpu.gpu.process_gap:
        return unknown(f"memory is in use, and its owner is not known: {gap}", value)
    if work := _works(gpu):
        return unknown(f"memory is in use by a process that nvidia-smi does not show: {work}", value)
    return failed("memory is in use and no process owns it", value, f"<= {most:.0f} MiB", action=Action.REBOOT)


def _works(gpu: GpuView) -> str:
    """Returns the evidence of a computation on the GPU, or ''. Data centre cards idle in P0."""
    used, state = gpu.peek(fields.UTILISATION), gpu.peek(fields.PSTATE).text
    if used.number:
        return f"it is {used.number:.0f} % busy"
    return f"it is in {state}" if gpu.traits.consumer and state in ("P0", "P1", "P2", "P3") else ""


def _group(groups: dict[str, Any], pid: str) -> str:
    """Returns the control group of a process, or '' if it has ended."""
    entry = groups.get(pid)
    return str(entry.get("cgroup", "")) if isinstance(entry, dict) else ""


@gpu_check(
    id="gpu-stray-process",
    title="Only containers and jobs use the GPU",
    reads="processes, /proc/PID/cgroup",
    rule="WARN for a compute process outside containers and Slurm jobs, or a dead process",
    source="OpenPAI GpuUsedByExternalProcess, GpuUsedByZombieContainer",
    remedy="ask its owner to stop it. Reset the GPU if the process is dead",
    action=Action.NONE,
)
def stray(gpu: GpuView, machine: MachineView) -> Result:
    if gpu.gpu.process_gap:
        return unknown(gpu.gpu.process_gap)
    known = machine.fact("gpu_processes")
    groups = known if isinstance(known, dict) else {}
    used = [process for process in gpu.gpu.processes if process.kind != "G"]
    # a name that may not be read, or that a vGPU or Windows does not tell, is no sign of death
    odd = [item for item in used if parse_reading(item.name).state is State.ERROR and "ermission" not in item.name]
    if odd:
        shown = ", ".join(f"{process.pid} {process.name}" for process in odd[:4])
        return warned("a dead process still holds the GPU", shown, "none", action=Action.RESET_GPU)
    outside = [
        f"{process.name} ({process.pid})"
        for process in used
        if (group := _group(groups, process.pid)) and not _CONTAINED.search(group)
    ]
    if outside:
        return warned("processes outside any container or job use the GPU", ", ".join(outside[:4]), "none")
    if not all(_group(groups, process.pid) for process in used):
        return unknown("not every process of the GPU could be inspected")
    return passed(f"{len(used)} processes, all contained")
