"""The machines' clocks agree; certificates and etcd live by that.

How far a clock is off is known only as an interval: the machine read it some time between our question and its
answer. A verdict is as harsh as what the whole interval proves, never harsher.
"""

from __future__ import annotations

from dataclasses import dataclass

from pai_install.preflight.evidence import Clock, Evidence
from pai_install.preflight.model import Case, Check, Ruling, failed, had, passed, skipped, warned

WARN_SECONDS = 1.0
FAIL_SECONDS = 30.0
_SLACK_SECONDS = 0.3  # events reach us a little after what they tell


@dataclass(frozen=True, slots=True)
class Offset:
    """Seconds that a clock is ahead of another: something between low and high."""

    low: float
    high: float

    @property
    def proven(self) -> float:
        """What it is off at least."""
        return max(self.low, -self.high, 0.0)

    def __sub__(self, other: Offset) -> Offset:
        return Offset(self.low - other.high, self.high - other.low)

    def __str__(self) -> str:
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        return f"{middle:+.1f} s, known to {half:.1f} s"


def offset_to_box(clock: Clock | None) -> Offset | None:
    """How far the machine's clock is ahead of this box's; None when its answer was not timed."""
    if clock is None or clock.asked is None or clock.answered is None:
        return None
    # it read `began` after we asked, and `ended` before we had the answer
    bounds = (clock.ended - clock.answered - _SLACK_SECONDS, clock.began - clock.asked + _SLACK_SECONDS)
    return Offset(min(bounds), max(bounds))


def clock(case: Case) -> Ruling | None:
    """The machine's clock agrees with that of the first control plane, and that one with this box's."""
    own = had(offset_to_box(case.evidence.clock), "clock")
    first = case.fleet.evidence.get(case.fleet.first)
    reference, other = (offset_to_box(first.clock), case.fleet.first) if first else (None, "")
    if case.name == case.fleet.first or reference is None:
        off, other = own, "this box"
    else:
        off = own - reference
    if off.proven <= WARN_SECONDS:
        return passed(f"its clock agrees with that of {other}", str(off))
    words = {
        "value": str(off),
        "expected": f"at most {WARN_SECONDS:g} s",
        "remedy": "set it: sudo timedatectl set-time, or start a time service that reaches its servers;"
        " ntp_servers in config.yaml names yours",
    }
    message = f"its clock is {off.proven:.0f} s or more {'ahead of' if off.low > 0 else 'behind'} that of {other}"
    return failed(message, **words) if off.proven > FAIL_SECONDS else warned(message, **words)


def time_service(case: Case) -> Ruling | None:
    """A time service keeps the clock right."""
    seen = had(case.evidence.time, "time")
    if case.evidence.container:
        return skipped("a container has its host's clock")
    running = ", ".join(seen.services)
    if not seen.services:
        remedy = "nothing: apply installs chrony; set ntp_servers in config.yaml where the internet is out of reach"
        return warned("no time service runs", expected="chrony or another one", remedy=remedy)
    if _synchronised(case.evidence):
        return passed(f"{running} keeps the clock", running)
    remedy = "see which servers answer (chronyc -n sources, timedatectl timesync-status); UDP port 123 must be open"
    return warned(f"{running} runs, but the clock is not synchronised", value=seen.chrony or running,
                  expected="synchronised", remedy=remedy)  # fmt: skip


def _synchronised(evidence: Evidence) -> bool:
    seen = had(evidence.time, "time")
    return seen.synchronised is True or seen.chrony == "Normal"


CHECKS = (
    Check("clock", "Clocks agree: WARN over 1 s, FAIL over 30 s", clock),
    Check("time-service", "A time service runs and has synchronised the clock", time_service),
)
