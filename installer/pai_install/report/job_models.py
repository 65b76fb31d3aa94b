"""The state of jobs as a result. Its own module: `job list` prints text, and imports no model for it. Pure."""

from __future__ import annotations

from pydantic import AliasPath, Field

from pai_install.jobs.pod_status import State
from pai_install.json_schema import Count, Report, ReportObject


class PodEntry(ReportObject):
    """A pod of a role."""

    index: Count
    pod: str
    state: State
    machine: str = Field(description="Empty before it has one.")
    exit_code: int | None = Field(description="null while it runs.")
    why: str = Field(description="What it waits for, or what ended it.")
    gone: bool = Field(description="Whether the pod is deleted. This was its last state.")
    started: str = Field(description="When its machine took it. Empty before that.")


class RoleEntry(ReportObject):
    """A role of a job."""

    name: str
    instances: Count = Field(validation_alias="wanted", description="In all, also those that start later.")
    gpus: Count
    pods: tuple[PodEntry, ...] = Field(validation_alias="instances")


class PreemptionEntry(ReportObject):
    """A loss of devices that is no failure."""

    at: str = Field(description="Time of the preemption. Empty: the scheduler does not keep it.")
    by: str = Field(description="NAMESPACE/NAME of the job that has the devices now. Empty: unknown.")
    why: str = Field(description="Cause, in the words of the scheduler.")


class JobEntry(ReportObject):
    """A job."""

    kind: str = Field(validation_alias=AliasPath("kind", "name"), description="Kind of its object, such as JobSet.")
    name: str = Field(description="As in the file.")
    label: str = Field(description="Name of its object in Kubernetes.")
    namespace: str
    group: str
    user: str
    virtual_cluster: str = Field(validation_alias="cluster")
    priority: str
    state: State
    why: str = Field(description="What it waits for, or why it failed. Empty: nothing to say.")
    retries: Count = Field(description="Of the whole job, so far.")
    created: str
    gone: str = Field(description="When its object was deleted. Empty: it exists.")
    stopped_by: str = Field(description="Who ended it. Empty: no one, or unknown.")
    stopped_why: str = Field(description="Why they ended it. Empty: unknown.")
    abnormal: str = Field(description="What is unusual about it. Empty without --abnormal.")
    warned: str = Field(description="Warning of its idle GPUs. Empty: none.")
    code: str = Field(description="sha256 of the archive of its code. Empty: no code.")
    preemptions: tuple[PreemptionEntry, ...] = Field(description="The latest last.")
    roles: tuple[RoleEntry, ...]


class JobReport(JobEntry, Report, title="pai-install job show"):
    """One job."""


class JobsReport(Report, title="pai-install job list"):
    """Jobs."""

    jobs: tuple[JobEntry, ...]
