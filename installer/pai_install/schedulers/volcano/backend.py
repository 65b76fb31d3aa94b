"""Volcano as a scheduler back end. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from pai_install.jobs.kubernetes import KubernetesJob
from pai_install.jobs.model import Job
from pai_install.jobs.place import JobPlace
from pai_install.schedulers.backend import Answers, Desired, SchedulerBackend
from pai_install.schedulers.job_fields import JobField
from pai_install.schedulers.job_inventory import BlockingJob
from pai_install.schedulers.volcano import inventory, usage
from pai_install.schedulers.volcano.compile import volcano_labels, volcano_objects, volcano_remarks
from pai_install.schedulers.volcano.jobs import volcano_fields
from pai_install.schedulers.volcano.jobs import volcano_objects as volcano_job_objects
from pai_install.schedulers.volcano.self_test import DRIVER
from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.quota_rules import QuotaRules
from pai_install.scheduling.usage.model import SchedulerState


class VolcanoBackend(SchedulerBackend):
    """Volcano."""

    name = "volcano"
    rules = QuotaRules(lends=True, counts_cores=True)
    addons = ("volcano", "training_operator", "virtual_clusters")
    tested_addons = frozenset({"volcano"})
    usage_resources = usage.KINDS
    inventory_resources = inventory.KINDS
    status_resource = inventory.POD_GROUPS
    self_test = DRIVER

    def desired(self, scheduling: Scheduling) -> Desired:
        """Objects and node labels."""
        labels = {machine: volcano_labels(scheduling, machine) for machine in scheduling.skus}
        return Desired(tuple(volcano_objects(scheduling)), labels, unsupported=tuple(volcano_remarks(scheduling)))

    def job_objects(self, job: Job, place: JobPlace) -> Iterator[dict[str, Any]]:
        """The job's own object, then its Secrets."""
        return volcano_job_objects(job, place)

    def queue_fields(self, job: KubernetesJob, place: JobPlace) -> Iterator[JobField]:
        """Queue and priority."""
        return volcano_fields(job, place)

    def usage(self, scheduling: Scheduling, answers: Answers) -> SchedulerState:
        """What jobs use."""
        return usage.volcano_seen(scheduling, answers)

    def kept_jobs(self, answers: Answers, devices: Collection[str]) -> Iterator[BlockingJob]:
        """Jobs that keep the scheduler."""
        del devices
        return inventory.volcano_kept_jobs(answers)
