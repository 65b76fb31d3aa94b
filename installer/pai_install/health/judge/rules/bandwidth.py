"""The measured bandwidth between the GPUs of a machine."""

from __future__ import annotations

import re

from pai_install.checks.result import Result, failed, passed, skipped, unknown
from pai_install.checks.verdict import Action
from pai_install.health.evidence import fields
from pai_install.health.evidence.document import CommandResult
from pai_install.health.evidence.parse.nccl import COMMAND, parse_all_reduce
from pai_install.health.judge.check import machine_check
from pai_install.health.judge.view import MachineView

LIMIT = "nccl-busbw"
# The defaults were measured with so many; fewer, or another topology, reach another number.
_GPUS_OF_DEFAULTS = 8
_TROUBLE = re.compile(r"NCCL WARN|Test (?:NCCL|CUDA) failure|error|failure", re.IGNORECASE)
_NO_PROGRAM = re.compile(r"all_reduce_perf: (?:command )?not found|executable file not found")


@machine_check(
    id="nccl-all-reduce",
    title="All-reduce over the machine's GPUs reaches the bandwidth of the model",
    reads="all_reduce_perf of nccl-tests in a job with all GPUs (only with --bandwidth-image)",
    rule="FAIL for wrong values, an error, or below nccl-busbw. UNKNOWN without a threshold or a result",
    limits=("nccl-busbw",),
    source="AZ",
    remedy="check nvlink-links, gpu-peer-to-peer, pcie-width, and the throttling checks. Drain the machine",
    action=Action.DRAIN,
    gpus_only=True,
)
def all_reduce(machine: MachineView) -> Result:
    result = machine.result(COMMAND)
    if result is None:
        return skipped("not requested: run `health --bandwidth-image IMAGE` on a site with a cluster")
    if gap := _gap(result):
        return gap
    measured = parse_all_reduce(result.stdout)
    if measured is not None and measured.wrong:
        return failed("the GPUs computed wrong values", f"{measured.wrong} wrong values", 0, action=Action.RMA)
    if result.rc != 0:
        lines = [line for line in result.text.splitlines() if _TROUBLE.search(line)] or result.text.splitlines()[-1:]
        return failed("all_reduce over the machine's GPUs ended with an error", " / ".join(lines)[:300], "ends well")
    if measured is None:
        return unknown("all_reduce_perf printed no result", result.stdout[-160:])
    return _speed(machine, measured.bus_gbs)


def _gap(result: CommandResult) -> Result | None:
    """Why nothing was measured, where that says nothing of the GPUs."""
    if result.not_started:
        return unknown(f"the job could not run: {result.stderr[:160]}")
    if result.timed_out:
        return unknown(f"the job timed out: {result.stderr[:160] or 'no reason given'}")
    if _NO_PROGRAM.search(result.text):
        return unknown("the image has no all_reduce_perf", remedy="use an image with nccl-tests")
    return None


def _speed(machine: MachineView, speed: float) -> Result:
    names = {gpu.peek(fields.PRODUCT).text for gpu in machine.gpus}
    product = names.pop() if len(names) == 1 else ""
    least = machine.optional_limit(LIMIT, product)
    value = f"{speed:g} GB/s"
    source = machine.limits.get(LIMIT, sku=machine.expected.sku, product=product)
    own = source is not None and source.source.startswith("site")
    if least is None or not (own or len(machine.gpus) == _GPUS_OF_DEFAULTS):
        known = f"no threshold is known for {len(machine.gpus)} x {product or 'mixed GPUs'}"
        return unknown(known, value, remedy=f"give {LIMIT} for this SKU in the site's health.yml")
    if speed < least:
        return failed("all-reduce over the GPUs is slow", value, f">= {least:g} GB/s")
    return passed(value, f">= {least:g} GB/s")
