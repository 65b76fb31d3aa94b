"""Sentences that several forms of the report share. Pure."""

from __future__ import annotations

from collections import Counter

from pai_install.errors import ExitCode
from pai_install.report.model import HostStatus, Outcome, PhaseResult
from pai_install.system.words import plural, shortened

# The gravest first: what a machine's row says over all phases.
_GRAVITY = (
    HostStatus.FAILED,
    HostStatus.UNREACHABLE,
    HostStatus.REFUSED,
    HostStatus.INTERRUPTED,
    HostStatus.LEFT,
    HostStatus.CHANGED,
    HostStatus.OK,
)


def took(seconds: float) -> str:
    """A duration for people: 4.2 s, 48 s, 3 min 20 s, 1 h 5 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def host_word(outcome: Outcome, host: str) -> HostStatus:
    """The gravest status of one machine over all phases."""
    seen = {phase.hosts[host].status for phase in outcome.phases if host in phase.hosts}
    return next(status for status in _GRAVITY if status in seen)


def phase_line(phase: PhaseResult) -> str:
    """How a phase ended, e.g. "2 changed, 1 failed, 12 tasks, 48 s"."""
    statuses = Counter(result.status for result in phase.hosts.values())
    if set(statuses) == {HostStatus.LEFT}:
        reasons = dict.fromkeys(result.why for result in phase.hosts.values() if result.why)
        return f"left out: {'; '.join(reasons)}"
    words = [f"{statuses[status]} {status.value}" for status in reversed(_GRAVITY) if statuses[status]]
    tasks = sum(result.counts.tasks for result in phase.hosts.values())
    return ", ".join([*words, plural(tasks, "task"), took(phase.duration_s)])


def headline(outcome: Outcome) -> str:
    """The one sentence at the end of a run."""
    time_word = took(outcome.duration_s)
    if outcome.exit_code is ExitCode.OK:
        return _good_news(outcome, time_word)
    sentences = {
        ExitCode.INTERRUPTED: f"interrupted after {time_word}. Run the same command again to continue",
        ExitCode.UNREACHABLE: f"not complete after {time_word}: "
        f"{_names(outcome, HostStatus.UNREACHABLE)} did not answer",
        ExitCode.PREFLIGHT_FAILED: f"not complete after {time_word}: preflight refused "
        f"{_names(outcome, HostStatus.REFUSED)}",
        ExitCode.VERIFICATION_FAILED: f"done in {time_word}, but a check failed",
        ExitCode.STEP_FAILED: f"stopped after {time_word}: {outcome.error.message}"
        if outcome.error is not None
        else f"not complete after {time_word}: {_names(outcome, HostStatus.FAILED)} failed",
    }
    return sentences[outcome.exit_code]


def _good_news(outcome: Outcome, time_word: str) -> str:
    if outcome.check:
        return f"checked in {time_word}; nothing was changed"
    changed = sum(counts.changed for counts in outcome.counts.values())
    return f"done in {time_word}: {plural(changed, 'change') if changed else 'nothing to change'}"


def _names(outcome: Outcome, status: HostStatus) -> str:
    hosts = [host for host in outcome.counts if host_word(outcome, host) is status]
    return shortened(hosts)
