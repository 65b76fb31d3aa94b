"""Kubernetes as a scheduler back end. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from pai_install.jobs.kubernetes import KubernetesJob
from pai_install.jobs.model import Job
from pai_install.jobs.place import JobPlace
from pai_install.schedulers.backend import Answers, Desired, SchedulerBackend
from pai_install.schedulers.job_fields import JobField
from pai_install.schedulers.job_inventory import BlockingJob
from pai_install.schedulers.kubernetes import inventory, usage
from pai_install.schedulers.kubernetes.compile import kubernetes_objects, kubernetes_remarks
from pai_install.schedulers.kubernetes.jobs import kubernetes_fields
from pai_install.schedulers.kubernetes.jobs import kubernetes_objects as kubernetes_job_objects
from pai_install.schedulers.kubernetes.self_test import DRIVER
from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.quota_rules import QuotaRules
from pai_install.scheduling.usage.model import SchedulerState


class KubernetesBackend(SchedulerBackend):
    """Kubernetes."""

    name = "default"
    rules = QuotaRules()
    addons = ("jobset", "training_operator", "virtual_clusters")
    # those of other schedulers: their removal leaves the cluster to this one
    tested_addons = frozenset({"kueue", "volcano", "hived"})
    usage_resources = usage.KINDS
    inventory_resources = inventory.KINDS
    self_test = DRIVER

    def desired(self, scheduling: Scheduling) -> Desired:
        """Objects and node labels."""
        return Desired(tuple(kubernetes_objects(scheduling)), unsupported=tuple(kubernetes_remarks(scheduling)))

    def job_objects(self, job: Job, place: JobPlace) -> Iterator[dict[str, Any]]:
        """The job's own object, then its Secrets."""
        return kubernetes_job_objects(job, place)

    def queue_fields(self, job: KubernetesJob, place: JobPlace) -> Iterator[JobField]:
        """Queue and priority."""
        return kubernetes_fields(job, place)

    def usage(self, scheduling: Scheduling, answers: Answers) -> SchedulerState:
        """What jobs use."""
        return usage.kubernetes_seen(scheduling, answers)

    def kept_jobs(self, answers: Answers, devices: Collection[str]) -> Iterator[BlockingJob]:
        """Jobs that keep the scheduler."""
        return inventory.kubernetes_kept_jobs(answers, devices)
