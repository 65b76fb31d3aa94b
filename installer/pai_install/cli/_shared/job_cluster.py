"""What the cluster says of jobs, and which job a name means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pai_install.app.virtual_clusters import require_scheduling
from pai_install.cluster.client import ApiError, ClusterClient, Select
from pai_install.documents.validate import did_you_mean
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.compile import names
from pai_install.jobs.history import JobRecord, completed, kept_jobs, selector
from pai_install.jobs.names import kubernetes_name
from pai_install.jobs.pod_status import ENDED
from pai_install.jobs.state import PODS, JobState, states_of
from pai_install.kube.objects import JsonObject
from pai_install.run.environment import Environment
from pai_install.run.state import state_of
from pai_install.schedulers.registry import backend_of
from pai_install.scheduling.job_kinds import queued_at
from pai_install.scheduling.model import Scheduling
from pai_install.site.groups import PlacedGroup, groups_of
from pai_install.site.load import load_site
from pai_install.site.model import Site
from pai_install.site.schedulers import has_training_operator

# what a selector takes for the value of a label
_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class JobsOfSite:
    """The jobs of a site's cluster."""

    site: Site
    scheduling: Scheduling
    client: ClusterClient

    def all(self, namespace: str = "", user: str = "") -> tuple[JobState, ...]:
        """Those of a namespace and user ("": of all), whoever submitted them. Raises NoClusterError, ApiError."""
        backend = self.scheduling.backend
        marks = f"{names.USER}={user}" if user else names.USER
        kinds = (*(kind.asked for kind in queued_at(backend, operator=has_training_operator(self.site))), PODS)
        said = tuple(filter(None, (backend_of(backend).status_resource,)))
        asked = [Select((kind,), namespace, marks) for kind in kinds]
        found = self._listed([*asked, *(Select((kind,), namespace) for kind in said)])
        jobs = [job for answer in found[: len(kinds) - 1] for job in answer]
        return states_of(jobs, found[len(kinds) - 1], found[-1] if said else ())

    def _listed(self, selects: Sequence[Select]) -> list[Sequence[JsonObject]]:
        """What there is of each; nothing of a kind that this cluster does not know."""
        try:
            return list(self.client.list(*selects))
        except ApiError as error:
            if error.reason != "NoSuchKind":
                raise
        return [self._known(select) for select in selects]

    def _known(self, select: Select) -> Sequence[JsonObject]:
        try:
            return self.client.list(select)[0]
        except ApiError as error:
            if error.reason != "NoSuchKind":
                raise
            return ()

    def namespace_of(self, group: str) -> str:
        """Where a group's jobs are; "" for those of any group. Raises PaiError for a name that is no group's."""
        return known_group(self.site, group).namespace if group else ""

    def kept(self, namespace: str = "", label: str = "") -> tuple[JobRecord, ...]:
        """Records of jobs of a namespace and name ("": of all), those of jobs that are there, too."""
        return kept_jobs(self.client.list(Select(("configmaps",), namespace, selector(label)))[0])

    def gone(self, there: Iterable[JobState], namespace: str = "") -> tuple[JobState, ...]:
        """What is kept of jobs of a namespace ("": of all) but for those that are there."""
        known = {job.uid for job in there}
        return tuple(one.job for one in self.kept(namespace) if one.job.uid not in known)

    def one(self, name: str, group: str) -> JobState:
        """The job that a name means, as its file or as Kubernetes has it, KIND/NAME too. group: "": of any.

        Raises PaiError.
        """
        found = self._there(name, group)
        if found is None:
            raise _unknown(name, group)
        return found

    def known(self, name: str, group: str) -> tuple[JobState, JobRecord | None]:
        """The same; where it has ended also with pods that are gone, and of one that is gone what is kept: the latest.

        Raises PaiError.
        """
        found = self._there(name, group)
        if found is None:
            return self._latest(name, group)
        if found.state not in ENDED or all(len(role.instances) >= role.wanted for role in found.roles):
            return found, None
        kept = next((one for one in self.kept(found.namespace, found.label) if one.job.uid == found.uid), None)
        return (completed(found, kept) if kept is not None else found), kept

    def _there(self, name: str, group: str) -> JobState | None:
        found = [job for job in self.all(self.namespace_of(group)) if _means(name, job)]
        if len(found) > 1:
            raise _ambiguous(name, found)
        return found[0] if found else None

    def _latest(self, name: str, group: str) -> tuple[JobState, JobRecord]:
        own, namespace = name.rpartition("/")[2], self.namespace_of(group)
        labels = [label for label in dict.fromkeys((kubernetes_name(own), own)) if _LABEL.fullmatch(label)]
        records = [one for label in labels for one in self.kept(namespace, label) if _means(name, one.job)]
        # names are used again; of each job the last one counts
        latest = {(one.job.namespace, one.job.kind.name): one for one in sorted(records, key=lambda it: it.job.created)}
        if not latest:
            raise _unknown(name, group)
        if len(latest) > 1:
            raise _ambiguous(name, [one.job for one in latest.values()])
        (kept,) = latest.values()
        return kept.job, kept


def _means(name: str, job: JobState) -> bool:
    kind, _, own = name.rpartition("/")
    called = own == job.name or job.label in (own, kubernetes_name(own))
    return called and kind.lower() in ("", job.kind.name.lower())


def _unknown(name: str, group: str) -> PaiError:
    where = f"group {group}" if group else "this site"
    return PaiError(
        f"{where} has no job {name}", code="unknown-job", remedy="pai-install job list --all", exit_code=ExitCode.USAGE
    )


def _ambiguous(name: str, found: Sequence[JobState]) -> PaiError:
    if len({job.namespace for job in found}) > 1:
        groups = dict.fromkeys(job.group or job.namespace for job in found)
        message, remedy = f"several groups have a job {name}", f"--group {', '.join(groups)}"
    else:
        kinds = " or ".join(f"{job.kind.name.lower()}/{job.label}" for job in found)
        message, remedy = f"several jobs are called {name}", f"say {kinds}"
    return PaiError(message, code="ambiguous-job", remedy=remedy, exit_code=ExitCode.USAGE)


@contextmanager
def jobs_of(site_dir: Path, environment: Environment) -> Iterator[JobsOfSite]:
    """The jobs of a site, whose virtual clusters they need."""
    site = load_site(site_dir).site
    scheduling = require_scheduling(site)
    with environment.cluster(site, state_of(site_dir), accept_new=False) as client:
        yield JobsOfSite(site, scheduling, client)


def known_group(site: Site, name: str) -> PlacedGroup:
    """The group of that name, else a PaiError that names what was probably meant."""
    groups = {group.name: group for group in groups_of(site.services)}
    if name not in groups:
        message = f"{name} is no group of this site"
        raise PaiError(message, code="unknown-group", remedy=did_you_mean(name, list(groups)), exit_code=ExitCode.USAGE)
    return groups[name]
