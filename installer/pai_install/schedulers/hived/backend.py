"""HiveD as a scheduler back end. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from pai_install.jobs.kubernetes import KubernetesJob
from pai_install.jobs.model import Job
from pai_install.jobs.place import JobPlace
from pai_install.schedulers.backend import Answers, Desired, SchedulerBackend
from pai_install.schedulers.hived import inventory, usage
from pai_install.schedulers.hived.compile import hived_objects, hived_remarks
from pai_install.schedulers.hived.jobs import hived_fields, hived_misfits, hived_problems
from pai_install.schedulers.hived.jobs import hived_objects as hived_job_objects
from pai_install.schedulers.hived.self_test import DRIVER
from pai_install.schedulers.job_fields import FieldMisfit, FieldProblem, JobField, SubmittedPod
from pai_install.schedulers.job_inventory import BlockingJob
from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.quota_rules import QuotaRules
from pai_install.scheduling.usage.model import SchedulerState


class HiveDBackend(SchedulerBackend):
    """HiveD."""

    name = "hived"
    rules = QuotaRules(lends=True, lends_to_oppo=True, preempts=True, has_cells=True)
    addons = ("jobset", "hived")
    usage_resources = usage.KINDS
    inventory_resources = inventory.KINDS
    self_test = DRIVER

    def desired(self, scheduling: Scheduling) -> Desired:
        """Objects and node labels."""
        return Desired(tuple(hived_objects(scheduling)), unsupported=tuple(hived_remarks(scheduling)))

    def job_objects(self, job: Job, place: JobPlace) -> Iterator[dict[str, Any]]:
        """The job's own object, then its Secrets."""
        return hived_job_objects(job, place)

    def job_misfits(self, job: Job, place: JobPlace) -> Iterator[FieldMisfit]:
        """Groups of pods that no cells can hold."""
        return hived_misfits(job, place)

    def queue_fields(self, job: KubernetesJob, place: JobPlace) -> Iterator[JobField]:
        """Queue and priority."""
        return hived_fields(job, place)

    def pod_problems(self, pod: SubmittedPod) -> Iterator[FieldProblem]:
        """Fields with devices and annotations that HiveD does not know."""
        return hived_problems(pod)

    def usage(self, scheduling: Scheduling, answers: Answers) -> SchedulerState:
        """What jobs use."""
        return usage.hived_seen(scheduling, answers)

    def kept_jobs(self, answers: Answers, devices: Collection[str]) -> Iterator[BlockingJob]:
        """Jobs that keep the scheduler."""
        del devices
        return inventory.hived_kept_jobs(answers)
