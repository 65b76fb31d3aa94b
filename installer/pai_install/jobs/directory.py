"""The jobs of a cluster, and the job that a name means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pai_install.cluster.client import ApiError, ClusterClient, Select
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.compile import names
from pai_install.jobs.history import JobRecord, completed, kept_jobs, selector
from pai_install.jobs.job_file import config_map_of, file_of, is_beside, unpacked
from pai_install.jobs.names import kubernetes_name
from pai_install.jobs.state import PODS, JobState, states_of
from pai_install.jobs.warning_events import EVENTS, FIELDS
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, text
from pai_install.profile.model import ClusterProfile
from pai_install.scheduling.job_kinds import JOBSET, JobKind

# valid values of a label selector
_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class JobDirectory:
    """The jobs of a cluster. Each method raises NoClusterError and ApiError.

    kinds: of jobs that the cluster's scheduler queues. status_resource: objects with the scheduler's status of jobs, as
    kubectl names them; "" for none.
    """

    profile: ClusterProfile
    kinds: tuple[JobKind, ...]
    status_resource: str
    client: ClusterClient

    def list(self, namespace: str = "", user: str = "") -> tuple[JobState, ...]:
        """Existing jobs of a namespace and user ("": of all)."""
        # Pods and jobs of the system have no owner, so the API server leaves them out.
        marks = f"{names.USER}={user}" if user else names.USER
        kinds = (*(kind.full_name for kind in self.kinds), PODS)
        status = (self.status_resource,) if self.status_resource else ()
        selects = [Select((kind,), namespace, marks) for kind in kinds]
        warnings = Select((EVENTS,), namespace, fields=FIELDS)
        *found, events = self._objects([*selects, *(Select((kind,), namespace) for kind in status), warnings])
        jobs = [job for answer in found[: len(kinds) - 1] for job in answer]
        return states_of(jobs, found[len(kinds) - 1], found[-1] if status else (), events)

    def records(self, namespace: str = "", label: str = "") -> tuple[JobRecord, ...]:
        """Records of jobs of a namespace and name ("": of all), existing jobs included."""
        return kept_jobs(self.client.list(Select(("configmaps",), namespace, selector(label)))[0])

    def deleted(self, existing: Iterable[JobState], namespace: str = "") -> tuple[JobState, ...]:
        """Deleted jobs of a namespace ("": of all) that have a record."""
        uids = {job.uid for job in existing}
        return tuple(one.job for one in self.records(namespace) if one.job.uid not in uids)

    def get(self, name: str, group: str) -> JobState:
        """The existing job that a name means. group: "" for any.

        name: as in the job's file or in Kubernetes, also KIND/NAME. Raises PaiError for none and for several.
        """
        found = self._existing(name, group)
        if found is None:
            raise _unknown(name, group)
        return found

    def find(self, name: str, group: str) -> tuple[JobState, JobRecord | None]:
        """As `get`, deleted jobs included: the latest of the name. An ended job has its deleted pods.

        The record is None for a job without one.
        """
        found = self._existing(name, group)
        if found is None:
            return self._latest(name, group)
        record = next((one for one in self.records(found.namespace, found.label) if one.job.uid == found.uid), None)
        return (completed(found, record) if record is not None else found), record

    def file_of(self, name: str, group: str) -> str | None:
        """The masked file of the job that a name means, or None for a job without one. Raises as `find`."""
        job, record = self.find(name, group)
        if job.gone:
            return unpacked(record.packed_file) if record is not None else None
        return self.file_at(Ref(job.kind.full_name, job.label, job.namespace))

    def file_at(self, job: Ref) -> str | None:
        """The masked file of an existing job, or None without one."""
        (found,) = self.client.get([job])
        if found is None or not is_beside(found):
            return file_of(found or {})
        (beside,) = self.client.get([Ref("configmap", config_map_of(job.name), job.namespace)])
        return file_of(found, beside)

    def namespace_of(self, group: str) -> str:
        """The namespace of a group, "" for "". Raises PaiError for an unknown group."""
        return self.profile.require_group(group).namespace if group else ""

    def look(self, job: JobState, statuses: Iterable[JsonObject] = ()) -> JobState | None:
        """An existing job as it is now, or None for a deleted one. statuses: objects of the scheduler about it."""
        (found,) = self.client.get([Ref(job.kind.full_name, job.label, job.namespace)])
        # Another job may have the name by now.
        if found is None or text(child(found, "metadata").get("uid")) != job.uid:
            return None
        # events about the Jobs of a JobSet have their UIDs
        own = "" if job.kind is JOBSET else f",involvedObject.uid={job.uid}"
        warnings = Select((EVENTS,), job.namespace, fields=f"{FIELDS}{own}")
        marks = job.kind.marks
        if marks is None:
            (events,) = self.client.list(warnings)
            states = states_of([], [found], statuses, events)
        else:
            pods, events = self.client.list(Select((PODS,), job.namespace, f"{marks.job}={job.label}"), warnings)
            states = states_of([found], pods, statuses, [*events, *self._warnings_of_starting(pods)])
        return next((one for one in states if one.uid == job.uid), None)

    def _warnings_of_starting(self, pods: Iterable[JsonObject]) -> Sequence[JsonObject]:
        """The warnings of the first pod that its machine does not start."""
        silent = (
            one for one in pods if child(one, "spec").get("nodeName") and child(one, "status").get("phase") == "Pending"
        )
        first = next(silent, None)
        if first is None:
            return ()
        uid, namespace = (text(child(first, "metadata").get(name)) for name in ("uid", "namespace"))
        return self.client.list(Select((EVENTS,), namespace, fields=f"{FIELDS},involvedObject.uid={uid}"))[0]

    def _objects(self, selects: Sequence[Select]) -> Sequence[Sequence[JsonObject]]:
        """The objects of each selection; none of a kind that the cluster lacks."""
        try:
            return self.client.list(*selects)
        except ApiError as error:
            if error.reason != "NoSuchKind":
                raise
        # One kind that the cluster lacks would otherwise hide all other jobs.
        return [self._known(select) for select in selects]

    def _known(self, select: Select) -> Sequence[JsonObject]:
        try:
            return self.client.list(select)[0]
        except ApiError as error:
            if error.reason != "NoSuchKind":
                raise
            return ()

    def _existing(self, name: str, group: str) -> JobState | None:
        found = [job for job in self.list(self.namespace_of(group)) if _means(name, job)]
        if len(found) > 1:
            raise _ambiguous(name, found)
        return found[0] if found else None

    def _latest(self, name: str, group: str) -> tuple[JobState, JobRecord]:
        own, namespace = name.rpartition("/")[2], self.namespace_of(group)
        # The API server refuses a selector with a value that is no label.
        labels = [label for label in dict.fromkeys((kubernetes_name(own), own)) if _LABEL.fullmatch(label)]
        records = [one for label in labels for one in self.records(namespace, label) if _means(name, one.job)]
        # users use names again: the last job of a name counts
        latest = {(one.job.namespace, one.job.kind.name): one for one in sorted(records, key=lambda it: it.job.created)}
        if not latest:
            raise _unknown(name, group)
        if len(latest) > 1:
            raise _ambiguous(name, [one.job for one in latest.values()])
        (record,) = latest.values()
        return record.job, record


def _means(name: str, job: JobState) -> bool:
    kind, _, own = name.rpartition("/")
    called = own == job.name or job.label in (own, kubernetes_name(own))
    return called and kind.lower() in ("", job.kind.name.lower())


def _unknown(name: str, group: str) -> PaiError:
    where = f"group {group}" if group else "this site"
    return PaiError(
        f"cannot find job {name} in {where}",
        code="unknown-job",
        remedy="list all jobs with pai-install job list --all",
        exit_code=ExitCode.USAGE,
    )


def _ambiguous(name: str, found: Sequence[JobState]) -> PaiError:
    if len({job.namespace for job in found}) > 1:
        groups = dict.fromkeys(job.group or job.namespace for job in found)
        message, remedy = f"cannot choose a job: several groups have a job {name}", f"add --group {' or '.join(groups)}"
    else:
        kinds = " or ".join(f"{job.kind.name.lower()}/{job.label}" for job in found)
        message, remedy = f"cannot choose a job: several have the name {name}", f"name {kinds}"
    return PaiError(message, code="ambiguous-job", remedy=remedy, exit_code=ExitCode.USAGE)
