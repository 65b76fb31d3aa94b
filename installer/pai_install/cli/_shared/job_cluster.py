"""What the cluster says of jobs, and which job a name means."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pai_install.cli._shared.vc_known import scheduling_at
from pai_install.cluster.client import ClusterClient, Select
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.compile import names
from pai_install.jobs.names import kubernetes_name
from pai_install.jobs.state import PODS, JobState, job_kind, said_by, states_of
from pai_install.run.environment import Environment
from pai_install.run.state import state_of
from pai_install.scheduling.model import Scheduling
from pai_install.site.groups import PlacedGroup, groups_of
from pai_install.site.load import load_site
from pai_install.site.model import Site
from pai_install.site.validate import did_you_mean


@dataclass(frozen=True, slots=True)
class JobsOfSite:
    """The jobs of a site's cluster."""

    site: Site
    scheduling: Scheduling
    client: ClusterClient

    def all(self, namespace: str = "", label: str = "") -> tuple[JobState, ...]:
        """Those of a namespace ("": of all), of that name in Kubernetes ("": all). Raises NoClusterError, ApiError."""
        backend = self.scheduling.backend
        marks = f"{names.JOB}={label}" if label else names.JOB
        selects = [Select((job_kind(backend),), namespace, marks), Select((PODS,), namespace, marks)]
        if kind := said_by(backend):
            selects.append(Select((kind,), namespace))
        jobs, pods, *said = self.client.list(*selects)
        return states_of(backend, jobs, pods, said[0] if said else ())

    def namespace_of(self, group: str) -> str:
        """Where a group's jobs are; "" for those of any group. Raises PaiError for a name that is no group's."""
        return known_group(self.site, group).namespace if group else ""

    def one(self, name: str, group: str) -> JobState:
        """The job that a name means, as its file or as Kubernetes has it. group: "": of any. Raises PaiError."""
        found = self.all(self.namespace_of(group), kubernetes_name(name))
        if not found:
            where = f"group {group}" if group else "this site"
            raise PaiError(f"{where} has no job {name}", remedy="pai-install job list", exit_code=ExitCode.USAGE)
        if len(found) > 1:
            groups = ", ".join(job.group or job.namespace for job in found)
            raise PaiError(f"several groups have a job {name}", remedy=f"--group {groups}", exit_code=ExitCode.USAGE)
        return found[0]


@contextmanager
def jobs_of(site_dir: Path, environment: Environment) -> Iterator[JobsOfSite]:
    """The jobs of a site, whose virtual clusters they need."""
    site = load_site(site_dir).site
    scheduling = scheduling_at(site)
    with environment.cluster(site, state_of(site_dir), accept_new=False) as client:
        yield JobsOfSite(site, scheduling, client)


def known_group(site: Site, name: str) -> PlacedGroup:
    """The group of that name, else a PaiError that names what was probably meant."""
    groups = {group.name: group for group in groups_of(site.services)}
    if name not in groups:
        message = f"{name} is no group of this site"
        raise PaiError(message, remedy=did_you_mean(name, list(groups)), exit_code=ExitCode.USAGE)
    return groups[name]
