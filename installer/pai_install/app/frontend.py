"""The port between use cases and their front end: a terminal, a test, or an API."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:  # verbs that only read load none of it
    from pai_install.jobs.state import JobState
    from pai_install.plan.model import Plan
    from pai_install.preflight.report import PreflightReport
    from pai_install.report.diffs import FileChange
    from pai_install.report.model import Outcome
    from pai_install.report.notices import Notice
    from pai_install.report.virtual_clusters_plan import ClustersChange
    from pai_install.run.workflow import WorkflowEvent


@dataclass(frozen=True, slots=True)
class Message:
    """A line for a person, beside the result."""

    text: str


@dataclass(frozen=True, slots=True)
class FileDifference:
    """A change of one of the site's files, as text. applied: False for a preview."""

    text: str


@dataclass(frozen=True, slots=True)
class PlanReady:
    """The plan of a run, before the first change."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class PreflightReady:
    """The preflight of machines that join."""

    report: PreflightReport


@dataclass(frozen=True, slots=True)
class ChangesReady:
    """File changes that check mode found."""

    changes: tuple[FileChange, ...]


@dataclass(frozen=True, slots=True)
class ClustersChangeReady:
    """The change of virtual clusters that is about to be applied."""

    change: ClustersChange


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The result of a run. report: its HTML page, or None for a preview."""

    outcome: Outcome
    report: Path | None = None


@dataclass(frozen=True, slots=True)
class JobChanged:
    """The new state of a watched job."""

    job: JobState


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log. source: the log, where it has a name. mixed: lines of other logs come between."""

    text: str
    source: str = ""
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """Bytes and files that a copy has copied so far. files, total: None where that is unknown. total: bytes."""

    size: int
    files: int | None
    total: int | None = None


RunEvent: TypeAlias = "PlanReady | PreflightReady | ChangesReady | ClustersChangeReady | RunEnded"
Event: TypeAlias = "Message | FileDifference | JobChanged | LogLine | CopyProgress | RunEvent | WorkflowEvent | Notice"


@dataclass(frozen=True, slots=True)
class Question:
    """A question before a change. word: the required answer, empty where yes is enough.

    plan: the plan to confirm, for front ends with clients that confirm the plan themselves.
    """

    text: str
    word: str = ""
    plan: Plan | None = None


class Frontend(Protocol):
    """Takes events and answers questions."""

    def notify(self, event: Event) -> None:
        """Takes one event, in the order of the work. Must not raise."""
        ...

    def confirm(self, question: Question) -> bool:
        """Whether the work may go on. Raises KeyboardInterrupt for Ctrl-C."""
        ...

    def require_answers(self) -> None:
        """Raises PaiError where `confirm` could not get an answer. Use cases call it before slow work."""
        ...


@dataclass(frozen=True, slots=True)
class FrontendObserver:
    """Passes a run's notices to a front end."""

    frontend: Frontend

    def notice(self, notice: Notice) -> None:
        """Passes one notice."""
        self.frontend.notify(notice)
