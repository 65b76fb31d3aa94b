"""A job beside the site that is to run it: what could never start there, and who may not. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pai_install.documents.problem import Problem, Severity
from pai_install.documents.validate import did_you_mean
from pai_install.errors import PaiError
from pai_install.jobs.capacity import Capacity, InstanceRequest
from pai_install.jobs.hdfs import CODE, MOUNT, OUTPUT, folder_on, with_hdfs
from pai_install.jobs.kubernetes import KubernetesFile, KubernetesJob
from pai_install.jobs.model import Job
from pai_install.jobs.place import JobOwner, JobPlace
from pai_install.jobs.read import JobReading
from pai_install.profile.model import ClusterProfile, ProfileHdfs
from pai_install.schedulers.registry import backend_of
from pai_install.schedulers.share_check import ShareMisfit, excessive_requests, excessive_roles
from pai_install.scheduling.admission import allowed
from pai_install.scheduling.device_shares import ShareRules, share_rules
from pai_install.scheduling.model import Priority, Scheduling, VirtualCluster
from pai_install.scheduling.quota_rules import QuotaRules
from pai_install.site.groups import DEFAULT, namespace_of

_MIB = 2**20
# codes of problems with which no queue ever lets a job start
_ENDLESS = frozenset(("job.too-large", "job.virtual-cluster"))


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the site cannot run a job. at: a key of JobReading.places."""

    at: str
    code: str
    message: str
    remedy: str
    severity: Severity = "error"


def check_job(reading: JobReading, profile: ClusterProfile, group: str | None) -> JobReading:
    """The reading with the problems that the job has here. group: who submits; None: any group of the site."""
    if reading.job is None:
        return reading
    checker = _Checker(profile, group)
    found = checker.of_job(reading.job) if isinstance(reading.job, Job) else checker.of_native(reading.job)
    checked = check_hdfs(reading.with_problems(tuple(_problem(reading, one) for one in found)), profile, group)
    if profile.hdfs is None or not isinstance(checked.job, Job) or not checked.job.hdfs:
        return checked
    return replace(checked, job=with_hdfs(checked.job, profile.hdfs.storage, profile.hdfs.path))


def check_hdfs(reading: JobReading, profile: ClusterProfile | None, group: str | None) -> JobReading:
    """The reading with what becomes of its folders of HDFS. profile: None without a site."""
    hdfs = reading.job.hdfs if isinstance(reading.job, Job) else {}
    mapping = profile.hdfs if profile is not None else None
    found = list(_on_storage(hdfs, profile, mapping, group) if profile and mapping else _nowhere(hdfs))
    if hdfs and mapping and isinstance(reading.job, Job):
        found += _taken(reading.job, mapping.storage)
    return reading.with_problems(tuple(_problem(reading, one) for one in found))


def _nowhere(hdfs: Mapping[str, str]) -> Iterator[Refusal]:
    """A job whose image or storage has its code runs without codeDir."""
    remedy = "set jobs: {hdfs: {storage: NAME, path: FOLDER}} in services-configuration.yaml, or mount a storage"
    for key, folder in hdfs.items():
        if key == CODE:
            message = f"has no effect without jobs.hdfs: nothing is copied to {_copied(folder)}"
            yield Refusal(f"hdfs:{key}", "no-effect", message, remedy, "warning")
        else:
            yield Refusal(f"hdfs:{key}", "unsupported", "there is no HDFS here", remedy)


def _on_storage(
    hdfs: Mapping[str, str], profile: ClusterProfile, mapping: ProfileHdfs, group: str | None
) -> Iterator[Refusal]:
    name = mapping.storage
    granted = any(one.storage == name and group in (None, one.group) for one in profile.grants)
    read_only = any(one.name == name and one.read_only for one in profile.storages)
    for key, folder in hdfs.items():
        place = folder_on(mapping.path, folder)
        if not granted:
            whom = f"which the group {group} may not mount" if group else "which no group may mount"
            message = f"is on the storage {name} of jobs.hdfs, {whom}"
            remedy = f"run pai-install storage grant {name} --group {group or 'GROUP'}"
            yield Refusal(f"hdfs:{key}", "storage", message, remedy)
        elif key == OUTPUT and read_only:
            yield Refusal(f"hdfs:{key}", "storage", f"is on the storage {name}, which is read-only", "remove it")
        else:
            then = f", copied to {_copied(folder)}" if key == CODE else f", mounted at {MOUNT}{place}"
            message = f"is the folder {place} of the storage {name}{then}"
            yield Refusal(f"hdfs:{key}", "hdfs", message, "remove it if the job does not need it", "warning")


def _taken(job: Job, storage: str) -> Iterator[Refusal]:
    for mount in job.mounts:
        if mount.path == MOUNT and mount.storage != storage:
            message = f"{MOUNT} is where {storage} is mounted for {', '.join(job.hdfs)}"
            yield Refusal(f"mount:{mount.storage}", "twice", message, "give it another mountPath")


def _copied(folder: str) -> str:
    return f"/root/{folder.rpartition('/')[2]}"


def never_starts(reading: JobReading, profile: ClusterProfile) -> str:
    """Why a job that was submitted can never start on the site as it is now, or an empty text."""
    found = check_job(reading, profile, None).problems
    return next((one.message for one in found if one.is_error and one.code in _ENDLESS), "")


def _problem(reading: JobReading, found: Refusal) -> Problem:
    place = reading.places.get(found.at)
    if place is None:  # the file does not say it, so what it says is told of as a whole
        place = next(iter(reading.places.values()))
        place = type(place)(place.document, ())
    before = len(place.document.problems)
    place.document.add(place.path, f"site.{found.code}", found.message, found.remedy, severity=found.severity)
    return place.document.problems[before]


@dataclass(frozen=True)
class _Checker:
    profile: ClusterProfile
    group: str | None

    @property
    def _scheduling(self) -> Scheduling | None:
        return self.profile.scheduling

    @cached_property
    def _share_rules(self) -> ShareRules | None:
        return share_rules(self._scheduling)

    @property
    def _rules(self) -> QuotaRules:
        return backend_of(self._scheduling.backend).rules if self._scheduling is not None else QuotaRules()

    def of_job(self, job: Job) -> Iterator[Refusal]:
        """What is wrong with a job of OpenPAI's."""
        yield from self._mounts(job)
        name = job.virtual_cluster or DEFAULT
        cluster, wrong = self._cluster(name, "virtual-cluster")
        yield from wrong
        if cluster is not None and job.priority is not None and job.priority not in allowed(cluster):
            message = f"{job.priority} is above the highest priority of {name}, {cluster.highest}"
            yield Refusal("priority", "priority", message, f"write {' or '.join(allowed(cluster))}")
        if wrong:
            return
        priority: Priority = job.priority or (cluster.usual if cluster is not None else "test")
        capacity = Capacity(self.profile, cluster, priority == "oppo", self._rules)
        requests = [
            InstanceRequest(
                role.name,
                role.instances,
                role.resources.gpus,
                role.resources.cpu * 1000,
                role.resources.memory_mb * _MIB,
                role.resources.sku,
            )
            for role in job.roles
        ]
        misfits = tuple(_not_fitting(capacity, requests, gang=job.gang and not self._has_groups(job)))
        # A job that is too large would get the same verdict from its scheduler, in other words.
        yield from misfits or (self._misfits(job, cluster, priority) if cluster is not None else ())
        if not misfits and self._share_rules is not None:
            yield from (_of_share(one, "resources") for one in excessive_requests(self._share_rules, requests))

    def _has_groups(self, job: Job) -> bool:
        """Whether HiveD starts some roles apart from others."""
        return self._rules.has_cells and any(role.affinity_group for role in job.roles)

    def _misfits(self, job: Job, cluster: VirtualCluster, priority: Priority) -> Iterator[Refusal]:
        """What the scheduler itself cannot do."""
        scheduling = self.profile.require_scheduling()
        place = JobPlace(scheduling, cluster, priority, JobOwner("", self.group or "", ""))
        try:
            for found in backend_of(scheduling.backend).job_misfits(job, place):
                code = "too-large" if found.severity == "error" else "no-effect"
                yield Refusal(found.at, code, found.message, found.remedy, found.severity)
        except PaiError as error:  # a role does not say which machines
            yield Refusal("virtual-cluster", error.code, error.message, error.remedy or "")

    def of_native(self, native: KubernetesFile) -> Iterator[Refusal]:
        """What is wrong with objects of Kubernetes."""
        for number, job in enumerate(native.jobs):
            yield from self._kind(number, job)
            yield from self._namespace(number, job)
            cluster, wrong = self._cluster(job.queue or DEFAULT, f"queue:{number}") if job.queue else (None, ())
            yield from wrong
            if wrong or self._scheduling is None:
                continue
            capacity = Capacity(self.profile, cluster, borrows=True, rules=self._rules)
            requests = [
                InstanceRequest(
                    role.name, role.instances, sum(role.devices.values()), role.cpu_millis, role.memory_bytes, None
                )
                for role in job.roles
            ]
            misfits = tuple(_not_fitting(capacity, requests, gang=False))
            for found in misfits:
                at = f"role:{number}:{found.at.partition(':')[2]}"
                yield Refusal(at, found.code, found.message, found.remedy)
            if not misfits and self._share_rules is not None:
                yield from (_of_share(one, f"role:{number}") for one in excessive_roles(self._share_rules, job))

    def _kind(self, number: int, job: KubernetesJob) -> Iterator[Refusal]:
        backend = self._scheduling.backend if self._scheduling is not None else "default"
        if backend not in job.kind.queued:
            message = f"{backend}, this site's scheduler, does not queue {job.kind.shown}"
            if not job.kind.queued:
                message = f"cannot submit {job.kind.shown}: its operator would run commands in the pods of all groups"
            others = f", or use a site with {' or '.join(job.kind.queued)}" if job.kind.queued else ""
            remedy = f"write the job as another kind{others}"
            yield Refusal(f"kind:{number}", "kind", message, remedy)
        elif job.kind.operated and not self.profile.training_operator:
            message = f"this site has no training-operator, which runs {job.kind.shown}"
            remedy = "add training-operator: true to the section scheduler of services-configuration.yaml, and apply"
            yield Refusal(f"kind:{number}", "kind", message, remedy)

    def _namespace(self, number: int, job: KubernetesJob) -> Iterator[Refusal]:
        if not job.namespace:
            return
        own = [namespace_of(self.group)] if self.group else [one.namespace for one in self.profile.groups] or [DEFAULT]
        if job.namespace not in own:
            message = f"{job.namespace} is not used: the job runs in the namespace of its group"
            yield Refusal(f"namespace:{number}", "namespace", message, "remove it", "warning")

    def _cluster(self, name: str, at: str) -> tuple[VirtualCluster | None, tuple[Refusal, ...]]:
        """A virtual cluster that the group may use, or why it may not."""
        scheduling = self._scheduling
        if scheduling is None:
            if name == DEFAULT:
                return None, ()
            message = f"{name} is no virtual cluster: this site has none"
            return None, (Refusal(at, "virtual-cluster", message, "remove it"),)
        names = [cluster.name for cluster in scheduling.clusters]
        if name not in names:
            message = f"{name} is no virtual cluster of this site"
            return None, (Refusal(at, "virtual-cluster", message, did_you_mean(name, names)),)
        cluster = scheduling.cluster(name)
        if self.group is None or not self.profile.groups or self.group in cluster.groups:
            return cluster, ()
        of_group = [one.name for one in scheduling.clusters if self.group in one.groups]
        message = f"the group {self.group} may not submit to the virtual cluster {name}"
        remedy = (
            f"choose one that it may use: {', '.join(of_group)}" if of_group else "ask an administrator for a grant"
        )
        return None, (Refusal(at, "virtual-cluster", message, remedy),)

    def _mounts(self, job: Job) -> Iterator[Refusal]:
        known = [one.name for one in self.profile.storages]
        granted = {grant.storage for grant in self.profile.grants if self.group in (None, grant.group)}
        for mount in job.mounts:
            at = f"mount:{mount.storage}"
            if mount.storage not in known:
                message = f"{mount.storage} is no storage of this site"
                remedy = did_you_mean(mount.storage, known) if known else "define a storage: the site has none"
                yield Refusal(at, "storage", message, remedy)
            elif mount.storage not in granted:
                whom = f"the group {self.group}" if self.group else "no group"
                message = f"{whom} may not mount {mount.storage}" if self.group else f"{whom} may mount {mount.storage}"
                names = ", ".join(sorted(granted))
                remedy = f"choose one that it may use: {names}" if names else "ask an administrator for a grant"
                yield Refusal(at, "storage", message, remedy)


def _of_share(found: ShareMisfit, about: str) -> Refusal:
    return Refusal(f"{about}:{found.role}", "share", found.message, found.remedy)


def _not_fitting(capacity: Capacity, requests: Sequence[InstanceRequest], *, gang: bool) -> Iterator[Refusal]:
    """What could never start, not even on empty machines."""
    warned = False
    for request in requests:
        wrong = capacity.refuses_instance(request)
        if wrong is not None:
            warned = True
            yield Refusal(f"{wrong.about}:{request.role}", "too-large", wrong.message, wrong.remedy)
    if gang and not warned:
        wrong = capacity.refuses_gang(requests)
        if wrong is not None:
            yield Refusal("virtual-cluster" if capacity.cluster else "", "too-large", wrong.message, wrong.remedy)
