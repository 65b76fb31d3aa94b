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
    if clock is None or clock.asked is None or clock.answered is None:
        return None
    # it read `began` after we asked, and `ended` before we had the answer
    bounds = (clock.ended - clock.answered - _SLACK_SECONDS, clock.began - clock.asked + _SLACK_SECONDS)
    return Offset(min(bounds), max(bounds))


@machine_check(
    id="clock",
    title="Clocks agree: WARN over 1 s, FAIL over 30 s",
    reads="clock: the machine's time between question and answer, and that of the first control plane",
    rule="WARN above clock-warn-seconds, FAIL above clock-fail-seconds, each only where the whole measuring "
    "interval is",
    limits=(
        "clock-warn-seconds",
        "clock-fail-seconds",
    ),
    source="own; certificates, etcd",
    remedy="set the clock: sudo timedatectl set-time, or start a time service that reaches its servers. "
    "Your own servers are ntp_servers in config.yaml",
)
def clock(case: Case) -> Result | None:
    """The machine's clock agrees with that of the first control plane, and that one with the controller host's."""
    own, warn = require(offset_to_box(case.evidence.clock), "clock"), case.limit("clock-warn-seconds")
    leader = case.fleet.evidence.get(case.fleet.leader)
    reference, other = (
        (offset_to_box(leader.clock), case.fleet.leader) if leader and leader.has("clock") else (None, "")
    )
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
    title="A time service runs and has synchronised the clock",
    reads="time: services that run, chronyc tracking, the kernel",
    rule="WARN when none runs or the clock is not synchronised; SKIP in a container",
    remedy="see which servers answer (chronyc -n sources, timedatectl timesync-status). UDP port 123 must be open",
)
def time_service(case: Case) -> Result | None:
    """A time service synchronises the clock."""
    seen = case.evidence.time
    if case.evidence.container:
        return skipped("a container has its host's clock")
    running = ", ".join(seen.services)
    if not seen.services:
        remedy = "nothing: apply installs chrony; set ntp_servers in config.yaml where the internet is out of reach"
        return warned("no time service runs", expected="chrony or another time service", remedy=remedy)
    if _synchronised(case.evidence):
        return passed(running, message=f"{running} synchronises the clock")
    return warned(f"{running} runs, but the clock is not synchronised", seen.chrony or running, "synchronised")


def _synchronised(evidence: PreflightEvidence) -> bool:
    # either of the two is enough
    return peek(evidence.time).synchronised is True or evidence.time.chrony == "Normal"
