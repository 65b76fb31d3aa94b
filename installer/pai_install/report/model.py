"""The result of a run as plain values: the source of every form of the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.json_schema import Count, Seconds

OBSERVE = "observe"  # the name of the read-only phase before the plan
PREFLIGHT = "preflight"  # and of the one before a machine is touched for the first time


class HostStatus(StrEnum):
    """How a phase ended for one host."""

    OK = "ok"
    CHANGED = "changed"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"  # a preflight check failed; nothing was changed
    LEFT = "left"  # not run; the next apply does it
    INTERRUPTED = "interrupted"

    @property
    def good(self) -> bool:
        """Whether the phase did its work on the host."""
        return self in (HostStatus.OK, HostStatus.CHANGED)


@dataclass(frozen=True, slots=True)
class Counts:
    """Tasks of one host. ok includes changed. tasks were executed, skipped ones were not."""

    ok: Count = 0
    changed: Count = 0
    failed: Count = 0
    unreachable: Count = 0
    skipped: Count = 0
    tasks: Count = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(Counts)))


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure of a host.

    message: of the module. evidence: its output, shortened to the end. cause and remedy: from the table of known
    causes, or empty.
    """

    host: str
    task: str = ""
    task_path: str = ""
    message: str = ""
    evidence: str = ""
    cause: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One task that changed something: its name, its file:line, how long it took."""

    task: str
    task_path: str
    duration_s: Seconds


@dataclass(frozen=True, slots=True)
class HostResult:
    """One host in one phase. `why` says why a host was left out."""

    status: HostStatus
    counts: Counts = Counts()
    failure: Failure | None = None
    changes: tuple[TaskRecord, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """One phase. `hosts` contains every planned host.

    failure: Ansible itself could not run it. undo: the command that reverts its changes, or "".
    """

    name: str
    title: str
    duration_s: float
    hosts: Mapping[str, HostResult]
    failure: Failure | None = None
    undo: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A whole run. check: nothing was changed on the machines."""

    duration_s: float
    phases: tuple[PhaseResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    interrupted: bool = False
    check: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """Returns the first applicable code: interrupted, failed step, unreachable host, refused host, failed check,
        ok.

        In check mode a failed task is no error, because it may depend on changes of an earlier phase.
        """
        if self.interrupted:
            return ExitCode.INTERRUPTED
        statuses = self._statuses(self.phases)
        # Observing needs no earlier change, so its failures count in a check as well.
        counted = self._statuses(phase for phase in self.phases if not self.check or phase.name == OBSERVE)
        if self.error is not None or HostStatus.FAILED in counted:
            return ExitCode.STEP_FAILED
        if HostStatus.UNREACHABLE in statuses:
            return ExitCode.UNREACHABLE
        if HostStatus.REFUSED in statuses:
            return ExitCode.PREFLIGHT_FAILED
        if any(finding.verdict is Verdict.FAIL for finding in self.findings):
            return ExitCode.VERIFICATION_FAILED
        return ExitCode.OK

    @staticmethod
    def _statuses(phases: Iterable[PhaseResult]) -> set[HostStatus]:
        return {host.status for phase in phases for host in phase.hosts.values()}

    @property
    def error(self) -> Failure | None:
        """Returns the failure of the run outside any host, for example of Ansible itself."""
        return next((phase.failure for phase in self.phases if phase.failure is not None), None)

    @property
    def ok(self) -> bool:
        """Whether everything that was planned is done."""
        return self.exit_code is ExitCode.OK

    @property
    def counts(self) -> dict[str, Counts]:
        """Host -> its tasks in all phases, in the order in which hosts first appear."""
        totals: dict[str, Counts] = {}
        for phase in self.phases:
            for host, result in phase.hosts.items():
                totals[host] = totals.get(host, Counts()) + result.counts
        return totals

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Every failure, in order."""
        return tuple(
            failure
            for phase in self.phases
            for failure in (*(result.failure for result in phase.hosts.values()), phase.failure)
            if failure is not None
        )

    @property
    def undo(self) -> tuple[str, ...]:
        """Returns the commands that revert the changes, last change first."""
        # The last change first: a later phase may stand on an earlier one.
        return tuple(phase.undo for phase in reversed(self.phases) if phase.undo)

    @property
    def left(self) -> dict[str, tuple[str, ...]]:
        """Host -> titles of the phases that still have to run there."""
        remaining: dict[str, list[str]] = {}
        for phase in self.phases:
            for host, result in phase.hosts.items():
                if not result.status.good:
                    remaining.setdefault(host, []).append(phase.title)
        return {host: tuple(titles) for host, titles in remaining.items()}
