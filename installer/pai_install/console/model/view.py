"""A job of the model: its state, and what filters, orders, and lists need of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pai_install.console.openpai.job import summary
from pai_install.console.openpai.json_text import json_text
from pai_install.console.openpai.states import state_of
from pai_install.jobs.state import JobState


@dataclass(frozen=True, slots=True)
class JobView:
    """A job of a list. record: the ConfigMap of a deleted job, else "". text: its item in OpenPAI's list, as JSON."""

    job: JobState
    state: str
    text: str = field(repr=False)
    record: str = ""

    @classmethod
    def of(cls, job: JobState, record: str = "") -> JobView:
        """The view of a job."""
        return cls(job, state_of(job), json_text(summary(job)), record)

    @property
    def place(self) -> tuple[str, str]:
        """Its place in the order of submission."""
        return self.job.created, self.job.uid
