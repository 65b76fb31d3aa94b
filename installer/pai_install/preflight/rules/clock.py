"""Checks that the machines' clocks agree, because certificates and etcd depend on it.

The offset of a clock is known only as an interval: the machine read its clock between our request and its response. A
verdict never exceeds the proof by the whole interval.
"""

from __future__ import annotations

from dataclasses import dataclass

from pai_install.checks.evidence import peek, require
from pai_install.checks.result import Result, failed, passed, skipped, warned
from pai_install.preflight.evidence import Clock, PreflightEvidence
from pai_install.preflight.model import Case, machine_check

_SLACK_SECONDS = 0.3  # events reach us a little after what they tell


@dataclass(frozen=True, slots=True)
class Offset:
    """Seconds that a clock is ahead of another: something between low and high."""

    low: float
    high: float

    @property
    def proven(self) -> float:
        """The least possible offset."""
        return max(self.low, -self.high, 0.0)

    def __sub__(self, other: Offset) -> Offset:
        return Offset(self.low - other.high, self.high - other.low)

    def __str__(self) -> str:
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        return f"{middle:+.1f} s ± {half:.1f} s"


def offset_to_box(clock: Clock | None) -> Offset | None:
    """Returns how far the machine's clock is ahead of the controller host's, or None without times of the response."""
    if clock is None or clock.requested is None or clock.answered is None:
        return None
    # it read `began` after we asked, and `ended` before we had the answer
    bounds = (clock.ended - clock.answered - _SLACK_SECONDS, clock.began - clock.requested + _SLACK_SECONDS)
    return Offset(min(bounds), max(bounds))


@machine_check(
    id="clock",
    title="Clocks differ by at most 1 s",
    reads="clock: the machine's time during the request, and the time of the first control plane",
    rule="WARN above clock-warn-seconds. FAIL above clock-fail-seconds. The whole measured interval must exceed the "
    "limit",
    limits=(
        "clock-warn-seconds",
        "clock-fail-seconds",
    ),
    source="own; certificates, etcd",
    remedy="set the clock with sudo timedatectl set-time, or start a time service with reachable servers. Set your own "
    "servers as ntp_servers in config.yaml",
)
def clock(case: Case) -> Result | None:
    """The machine's clock agrees with that of the first control plane, and that one with the controller host's."""
    own, warn = require(offset_to_box(case.evidence.clock), "clock"), case.limit("clock-warn-seconds")
    leader = case.fleet.evidence.get(case.fleet.leader)
    reference, other = (
        (offset_to_box(leader.clock), case.fleet.leader) if leader and leader.has("clock") else (None, "")
    )
    # The first control plane is the reference, so its own clock is compared with this host.
    if case.name == case.fleet.leader or reference is None:
        off, other = own, "the controller host"
    else:
        off = own - reference
    if off.proven <= warn:
        return passed(str(off), message=f"the clock agrees with that of {other}")
    message = f"the clock is {off.proven:.0f} s or more {'ahead of' if off.low > 0 else 'behind'} that of {other}"
    judge = failed if off.proven > case.limit("clock-fail-seconds") else warned
    return judge(message, off, f"at most {warn:g} s")


@machine_check(
    id="time-service",
    title="A time service synchronises the clock",
    reads="time: running services, chronyc tracking, the kernel",
    rule="WARN when none runs or the clock is not synchronised. SKIP in a container",
    remedy="list the servers that answer (chronyc -n sources, timedatectl timesync-status). Open UDP port 123",
)
def time_service(case: Case) -> Result | None:
    """A time service synchronises the clock."""
    seen = case.evidence.time
    if case.evidence.container:
        return skipped("a container uses the clock of its host")
    running = ", ".join(seen.services)
    if not seen.services:
        remedy = "no action is required: apply installs chrony. Without internet access, set ntp_servers in config.yaml"
        return warned("no time service runs", expected="chrony or another time service", remedy=remedy)
    if _synchronised(case.evidence):
        return passed(running, message=f"{running} synchronises the clock")
    return warned(f"{running} runs, but the clock is not synchronised", seen.chrony or running, "synchronised")


def _synchronised(evidence: PreflightEvidence) -> bool:
    # either of the two is enough
    return peek(evidence.time).synchronised is True or evidence.time.chrony == "Normal"
