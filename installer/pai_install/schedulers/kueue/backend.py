"""Kueue as a scheduler back end. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from pai_install.jobs.kubernetes import KubernetesJob
from pai_install.jobs.model import Job
from pai_install.jobs.place import JobPlace
from pai_install.schedulers.backend import Answers, Desired, SchedulerBackend
from pai_install.schedulers.job_fields import FieldProblem, JobField, SubmittedPod
from pai_install.schedulers.job_inventory import BlockingJob
from pai_install.schedulers.kueue import inventory, usage
from pai_install.schedulers.kueue.compile import kueue_labels, kueue_objects, kueue_remarks
from pai_install.schedulers.kueue.jobs import kueue_fields, kueue_problems
from pai_install.schedulers.kueue.jobs import kueue_objects as kueue_job_objects
from pai_install.schedulers.kueue.self_test import DRIVER
from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.quota_rules import QuotaRules
from pai_install.scheduling.usage.model import SchedulerState


class KueueBackend(SchedulerBackend):
    """Kueue."""

    name = "kueue"
    rules = QuotaRules(lends=True, preempts=True, counts_cores=True)
    addons = ("jobset", "training_operator", "kueue", "virtual_clusters")
    tested_addons = frozenset({"kueue", "jobset"})
    usage_resources = usage.KINDS
    inventory_resources = inventory.KINDS
    status_resource = inventory.WORKLOADS
    self_test = DRIVER

    def desired(self, scheduling: Scheduling) -> Desired:
        """Objects and node labels."""
        labels = {machine: kueue_labels(scheduling, machine) for machine in scheduling.skus}
        return Desired(tuple(kueue_objects(scheduling)), labels, unsupported=tuple(kueue_remarks(scheduling)))

    def job_objects(self, job: Job, place: JobPlace) -> Iterator[dict[str, Any]]:
        """The job's own object, then its Secrets."""
        return kueue_job_objects(job, place)

    def queue_fields(self, job: KubernetesJob, place: JobPlace) -> Iterator[JobField]:
        """Queue and priority."""
        del job
        return kueue_fields(place)

    def pod_problems(self, pod: SubmittedPod) -> Iterator[FieldProblem]:
        """Fields with a priority that Kueue does not know."""
        return kueue_problems(pod)

    def usage(self, scheduling: Scheduling, answers: Answers) -> SchedulerState:
        """What jobs use."""
        return usage.kueue_seen(scheduling, answers)

    def kept_jobs(self, answers: Answers, devices: Collection[str]) -> Iterator[BlockingJob]:
        """Jobs that keep the scheduler."""
        del devices
        return inventory.kueue_kept_jobs(answers)
