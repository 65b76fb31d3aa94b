"""Use cases of virtual clusters that read: the site's, their use, a change, and a simulation of a job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pai_install.app.context import App
from pai_install.app.last_applied import last_applied
from pai_install.cluster.client import ApiError, ClusterClient, NoClusterError, Select
from pai_install.errors import ExitCode, PaiError
from pai_install.profile.model import ClusterProfile
from pai_install.report.virtual_clusters_plan import ClustersChange, clusters_change
from pai_install.schedulers.compile import remarks as scheduler_limits
from pai_install.schedulers.hived.placement import guaranteed_cells
from pai_install.schedulers.registry import backend_of
from pai_install.schedulers.simulation import Simulation, simulate
from pai_install.schedulers.usage import NODES, Usage, kinds_of, usage_of
from pai_install.scheduling.job_request import JobRequest, JobRequestError, read_job_request
from pai_install.scheduling.model import Priority, Scheduling
from pai_install.scheduling.read import scheduling_of
from pai_install.scheduling.usage.health import Unmet, unmet
from pai_install.system.parameters import Parameter


@dataclass(frozen=True, slots=True)
class VirtualClusters:
    """The virtual clusters of a site. scheduling is None without any.

    remarks: the cells of HiveD's block. limits: values that the scheduler does not enforce.
    unmet: guarantees that the nodes cannot meet now, None without a query of the cluster.
    """

    scheduling: Scheduling | None
    remarks: tuple[str, ...]
    limits: tuple[str, ...]
    unmet: tuple[Unmet, ...] | None


def list_virtual_clusters(app: App) -> VirtualClusters:
    """Returns the virtual clusters of the site. Queries the nodes of the cluster if it is reachable."""
    scheduling = scheduling_of(app.site)
    if scheduling is None:
        return VirtualClusters(None, (), (), None)
    cells = tuple(guaranteed_cells(scheduling))
    return VirtualClusters(scheduling, cells, scheduler_limits(scheduling), _unmet(app, scheduling))


def _unmet(app: App, scheduling: Scheduling) -> tuple[Unmet, ...] | None:
    if not app.state.known_hosts.exists():  # no machine was reached yet
        return None
    try:
        (nodes,) = app.cluster.list(Select((NODES,)))
    except (NoClusterError, ApiError) as error:
        app.notify(f"what machines offer now is not known: {error.message}")
        return None
    return unmet(scheduling, nodes, app.profile.absent)


class VirtualClusterName(BaseModel):
    """Names one virtual cluster."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Annotated[str, Parameter(positional=True, metavar="NAME")]


def show_virtual_cluster(app: App, request: VirtualClusterName) -> Scheduling:
    """The division of the site's workers, which has the virtual cluster. Asks no machine."""
    profile = app.profile
    profile.require_cluster(request.name)
    return profile.require_scheduling()


class VirtualClusterUsage(BaseModel):
    """Selects virtual clusters: one, or all."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Annotated[str, Parameter(positional=True, metavar="[NAME]")] = ""


def usage_of_virtual_clusters(app: App, request: VirtualClusterUsage) -> tuple[Scheduling, Usage]:
    """The current use of all virtual clusters. Raises PaiError for an unknown name, NoClusterError, and ApiError."""
    profile = app.profile
    scheduling = profile.require_scheduling()
    if request.name:
        profile.require_cluster(request.name)
    return scheduling, read_usage(app.cluster, profile, scheduling)


def read_usage(cluster: ClusterClient, profile: ClusterProfile, scheduling: Scheduling) -> Usage:
    """The use of virtual clusters in the cluster. Raises NoClusterError and ApiError."""
    answers = cluster.list(*(Select((kind,)) for kind in kinds_of(scheduling.backend)))
    return usage_of(scheduling, answers, profile.absent)


def plan_virtual_clusters(app: App) -> ClustersChange:
    """The difference between the site and the cluster. Raises NoClusterError and ApiError."""
    return change_of(app, last_applied(app.cluster))


def change_of(app: App, before: Scheduling | None) -> ClustersChange:
    """The difference between `before` and the site, with the jobs that it affects."""
    usage = read_usage(app.cluster, app.profile, before) if before is not None else None
    return clusters_change(before, scheduling_of(app.site), usage)


class SimulateJob(BaseModel):
    """Options of a simulation."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    cluster: Annotated[str, Parameter("--vc", "NAME")] = Field(
        default="", description="Virtual cluster to simulate the job in."
    )
    priority: Priority | None = Field(default=None, description="Priority to simulate the job with.")


def simulate_job(app: App, request: SimulateJob, file: str, content: bytes) -> tuple[Scheduling, Simulation]:
    """The answer for a job. file: the name of its file, for messages.

    Raises PaiError for a file that is not one job, NoClusterError, and ApiError.
    """
    profile = app.profile
    scheduling = profile.require_scheduling()
    if request.cluster:
        profile.require_cluster(request.cluster)
    job = _job_request(request, file, content)
    usage = read_usage(app.cluster, profile, scheduling)
    return scheduling, simulate_in(profile, usage, job)


def simulate_in(profile: ClusterProfile, usage: Usage, job: JobRequest) -> Simulation:
    """The answer for a job beside this usage of the virtual clusters."""
    return simulate(profile, backend_of(profile.require_scheduling().backend).rules, usage, job)


def _job_request(request: SimulateJob, file: str, content: bytes) -> JobRequest:
    """The job with the options applied."""
    try:
        job = read_job_request(content.decode())
    except (JobRequestError, UnicodeDecodeError) as error:
        raise PaiError(
            f"cannot read {file}: {error}",
            code="job-not-simulated",
            remedy="write one JobSet, batch Job, Volcano Job, or Pod into the file",
            exit_code=ExitCode.USAGE,
        ) from error
    queue = replace(job.queue, cluster=request.cluster) if request.cluster else job.queue
    queue = replace(queue, priority=request.priority, number=None) if request.priority else queue
    return replace(job, queue=queue)
