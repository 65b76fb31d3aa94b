"""Use case: the quota that holds a waiting job back, and the holders of this quota with the use of their GPUs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pai_install.app.virtual_clusters import simulate_in
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.gpu_utilization import JobUtilization, utilization_of_job
from pai_install.jobs.state import JobState
from pai_install.kube.objects import JsonObject
from pai_install.profile.model import ClusterProfile
from pai_install.schedulers.simulation import Simulation
from pai_install.schedulers.usage import Usage
from pai_install.scheduling.job_request import JobRequestError, job_request_of
from pai_install.scheduling.model import PRIORITIES
from pai_install.scheduling.usage.model import UnfinishedJob


@dataclass(frozen=True, slots=True)
class QuotaJob:
    """A job as the scheduler counts it. job: its state, None where no job of a user has this name."""

    seen: UnfinishedJob
    job: JobState | None

    @property
    def namespace(self) -> str:
        """The namespace of the job."""
        return self.seen.name.partition("/")[0]

    @property
    def units(self) -> int:
        """Devices, or cores of a job without devices."""
        devices = sum(amount for resource, amount in self.seen.units.items() if resource)
        return devices or sum(self.seen.units.values())


@dataclass(frozen=True, slots=True)
class HiddenJobs:
    """Jobs of a virtual cluster that a person may not see: their number and their units."""

    cluster: str
    jobs: int
    units: int


@dataclass(frozen=True, slots=True)
class JobQuota:
    """Why a job waits.

    simulation: the answer of `vc simulate` for the job. reserved: its quota is reserved, so it waits for a node.
    holders: running jobs with the same quota. ahead: waiting jobs of its virtual cluster that are older or have a
    higher priority. waiting: all waiting jobs of its virtual cluster.
    """

    simulation: Simulation
    reserved: bool
    holders: tuple[QuotaJob, ...]
    ahead: int
    waiting: int


def quota_of_job(
    profile: ClusterProfile, usage: Usage, item: JsonObject, job: JobState, states: Mapping[str, JobState]
) -> JobQuota:
    """Why a waiting job waits. item: its object. states: of `states_of_seen`. Raises PaiError without pods."""
    try:
        request = job_request_of(item)
    except JobRequestError as error:
        raise PaiError(
            f"cannot simulate {job.name}: {error}", code="job-not-simulated", exit_code=ExitCode.USAGE
        ) from error
    # a job is in the virtual cluster that its state names: not every scheduler has a queue in the object
    queue = request.queue
    queue = replace(queue, cluster=job.cluster or queue.cluster, priority=queue.priority or job.priority)
    request = replace(request, queue=queue)
    simulation = simulate_in(profile, usage, request)
    own = next((seen for seen in usage.jobs if (it := states.get(seen.name)) is not None and it.uid == job.uid), None)
    waiting = [seen for seen in usage.jobs if seen.waits and seen.cluster == job.cluster and seen != own]
    return JobQuota(
        simulation,
        own is not None and not own.waits,
        tuple(QuotaJob(seen, states.get(seen.name)) for seen in simulation.holders if seen != own),
        sum(_is_ahead(seen, states.get(seen.name), job) for seen in waiting),
        len(waiting) + 1,
    )


def _is_ahead(seen: UnfinishedJob, other: JobState | None, job: JobState) -> bool:
    other_priority = _priority(other.priority) if other is not None else seen.priority
    own_priority = _priority(job.priority)
    return other_priority > own_priority or (
        other_priority == own_priority and other is not None and other.created < job.created
    )


def _priority(name: str) -> int:
    return next((value for word, value in PRIORITIES.items() if word == name), 0)


def jobs_of_cluster(usage: Usage, cluster: str, states: Mapping[str, JobState]) -> tuple[QuotaJob, ...]:
    """Unfinished jobs of a virtual cluster, running ones first, then the oldest. states: of `states_of_seen`."""
    found = [QuotaJob(one, states.get(one.name)) for one in usage.jobs if one.cluster == cluster]
    found.sort(key=lambda one: (one.seen.waits, one.job.created if one.job is not None else "", one.seen.name))
    return tuple(found)


def visible_jobs(
    jobs: Iterable[QuotaJob], namespaces: frozenset[str] | None
) -> tuple[list[QuotaJob], list[HiddenJobs]]:
    """Jobs in these namespaces, and the sums of all others by virtual cluster. namespaces: None for all."""
    shown: list[QuotaJob] = []
    numbers: Counter[str] = Counter()
    units: Counter[str] = Counter()
    for one in jobs:
        if namespaces is None or one.namespace in namespaces:
            shown.append(one)
        else:
            numbers[one.seen.cluster] += 1
            units[one.seen.cluster] += one.units
    return shown, [HiddenJobs(cluster, number, units[cluster]) for cluster, number in numbers.items()]


def utilization_in(profile: ClusterProfile, job: JobState, now: float) -> JobUtilization | None:
    """How busy the GPUs of a job are, None where a meter is silent. The site's limit says when a GPU is idle."""
    limits = profile.limits_of(job.cluster)
    below = (limits.notebook if job.notebook else limits.idle).busy_below
    return utilization_of_job((one.use for one in job.holders), below, now)


def states_of_seen(seen: Sequence[UnfinishedJob], jobs: Sequence[JobState]) -> Iterable[tuple[str, JobState]]:
    """Yields the name of a job as its scheduler counts it, and its state.

    A scheduler names a job, its gang (HiveD: NAMESPACE.JOB.GROUP), or a part of a JobSet (JOBSET-ROLE-NUMBER).
    """
    exact: dict[str, JobState] = {}
    # The names of gangs are first, so that a job of such a name replaces them below.
    for job in jobs:
        exact[f"{job.namespace}/{job.namespace}.{job.label}"] = job
    for job in jobs:
        exact[f"{job.namespace}/{job.label}"] = job
    for one in seen:
        found = exact.get(one.name) or _whole_of(one.name, exact)
        if found is not None:
            yield one.name, found


def _whole_of(name: str, jobs: Mapping[str, JobState]) -> JobState | None:
    """The job whose name begins this one, the longest."""
    end = len(name)
    while (end := max(name.rfind("-", 0, end), name.rfind(".", 0, end))) > 0:
        found = jobs.get(name[:end])
        if found is not None and (name[end] == "." or found.kind.name == "JobSet"):
            return found
    return None
