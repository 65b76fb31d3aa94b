"""What a scheduler back end has to provide. One package each implements it; `registry.py` lists them. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from pai_install.kube.objects import JsonObject
from pai_install.schedulers.job_fields import FieldMisfit, FieldProblem, JobField, SubmittedPod
from pai_install.schedulers.job_inventory import BlockingJob
from pai_install.scheduling.model import Backend, Scheduling
from pai_install.scheduling.quota_rules import QuotaRules
from pai_install.scheduling.usage.model import SchedulerState

if TYPE_CHECKING:  # verbs that read submit no job, and test no scheduler
    from pai_install.jobs.kubernetes import KubernetesJob
    from pai_install.jobs.model import Job
    from pai_install.jobs.place import JobPlace
    from pai_install.schedulers.self_test.driver import SelfTestDriver

Object = dict[str, Any]
# kind of objects, as kubectl names it -> the objects
Answers = Mapping[str, Iterable[JsonObject]]

_NO_EFFECT = "has no effect: the scheduler of this site is not HiveD"


@dataclass(frozen=True, slots=True)
class Desired:
    """The desired state of a site's virtual clusters.

    objects: of Kubernetes, in the order in which they are created. node_labels: machine -> labels. role_variables:
    machine -> variables of roles, for a scheduler that runs outside Kubernetes. unsupported: a sentence for each
    property of the site that this scheduler cannot keep.
    """

    objects: tuple[Object, ...] = ()
    node_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    role_variables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unsupported: tuple[str, ...] = ()


class SchedulerBackend(ABC):
    """One batch scheduler.

    name: value of the key `scheduler.type` in a site. addons: that it needs, in the order of installation.
    tested_addons: add-ons whose installation is followed by a self-test. usage_resources, inventory_resources: kinds of
    objects that `usage` and `kept_jobs` read, in all namespaces. status_resource: kind of the objects with the reason
    of a pending job; empty: none.
    """

    name: ClassVar[Backend]
    rules: ClassVar[QuotaRules]
    addons: ClassVar[tuple[str, ...]]
    tested_addons: ClassVar[frozenset[str]] = frozenset()
    usage_resources: ClassVar[tuple[str, ...]]
    inventory_resources: ClassVar[tuple[str, ...]]
    status_resource: ClassVar[str] = ""
    self_test: ClassVar[SelfTestDriver]

    @abstractmethod
    def desired(self, scheduling: Scheduling) -> Desired:
        """What the site's virtual clusters need."""

    @abstractmethod
    def job_objects(self, job: Job, place: JobPlace) -> Iterator[Object]:
        """A job's own object, then those that go with it. Raises PaiError for what the scheduler cannot do."""

    def job_misfits(self, job: Job, place: JobPlace) -> Iterator[FieldMisfit]:
        """Why the job can never start, beyond its amounts, and which of its options have no effect."""
        del place
        if job.lazy_preemption:
            yield FieldMisfit("lazy", _NO_EFFECT, "remove it", "warning")
        if job.gang_release:
            yield FieldMisfit("release", _NO_EFFECT, "remove it", "warning")
        for role in job.roles:
            if role.pinned_cell:
                yield FieldMisfit(f"pin:{role.name}", _NO_EFFECT, "remove it", "warning")
            if role.affinity_group and len({one.affinity_group for one in job.roles}) > 1:
                yield FieldMisfit(f"affinity:{role.name}", _NO_EFFECT, "remove it", "warning")

    @abstractmethod
    def queue_fields(self, job: KubernetesJob, place: JobPlace) -> Iterator[JobField]:
        """Fields that put a job written as a Kubernetes object into its queue."""

    def pod_problems(self, pod: SubmittedPod) -> Iterator[FieldProblem]:
        """Fields of a user's pod by which it would pass the queue by."""
        del pod
        return iter(())

    @abstractmethod
    def usage(self, scheduling: Scheduling, answers: Answers) -> SchedulerState:
        """What jobs use. answers: the objects of each of `usage_resources`."""

    @abstractmethod
    def kept_jobs(self, answers: Answers, devices: Collection[str]) -> Iterator[BlockingJob]:
        """Jobs that must end before the scheduler can be removed. answers: of each of `inventory_resources`."""
