"""Rules for Kubernetes objects of a user that the API server cannot apply, or not with a line of the file. Pure.

All other rules are admission policies (users/policies.py): `job submit` asks the API server in the user's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pai_install.documents.document import Document, Entries, Items, Text
from pai_install.documents.problem import YamlPath, short
from pai_install.jobs.kubernetes import Companion, KubernetesFile, KubernetesJob
from pai_install.jobs.place import JobPlace
from pai_install.schedulers.job_fields import SubmittedPod
from pai_install.schedulers.registry import backend_of
from pai_install.scheduling.admission import vendors
from pai_install.scheduling.amounts import devices_of
from pai_install.scheduling.job_kinds import template_ways

_CONTAINERS = ("containers", "initContainers")
_NOTHING = (None, "", "false", "0", "~", "null")


def reject(native: KubernetesFile, places: Mapping[str, JobPlace]) -> None:
    """Adds a problem to the documents for each object that bypasses a queue or that members cannot create."""
    for one in native.beside:
        _companion(one, places[native.name].owner.user)
    for job in native.jobs:
        for way in template_ways(job.content, job.kind):
            _Pod(job, places[job.name], (*way, "spec")).check()


def _companion(one: Companion, user: str) -> None:
    """Companions are created by the administrator: Services, and Secrets with names of their own."""
    document = one.document
    if one.kind == "Secret" and "." in one.name and not one.name.startswith(f"{user}."):
        message = f"the Secret {short(one.name)} would be {short(one.name.partition('.')[0])}'s, and this is {user}'s"
        document.add(("metadata", "name"), "site.not-permitted", message, f"begin its name with {user}.")
    if one.kind == "Secret" and _text(document.at(("type",))) == "kubernetes.io/service-account-token":
        document.add(("type",), "site.not-permitted", "tokens of service accounts are for administrators to make")
    # Members cannot create Services, so nothing but this check limits what the administrator creates for them.
    if one.kind == "Service" and _text(document.at(("spec", "type"))) not in (None, "", "ClusterIP"):
        message = "a Service of a job is for its own pods: no port of a machine, no address outside"
        document.add(("spec", "type"), "site.not-permitted", message, "remove type")
    outside: YamlPath = ("spec", "externalIPs")
    if one.kind == "Service" and document.at(outside) is not None:
        document.add(outside, "site.not-permitted", "a Service of a job has no externalIPs", "remove it")


@dataclass(frozen=True)
class _Pod:
    """A pod's specification at `path`."""

    job: KubernetesJob
    place: JobPlace
    path: YamlPath

    @property
    def _document(self) -> Document:
        return self.job.document

    def check(self) -> None:
        """Adds problems of fields with which a pod would bypass its queue."""
        devices = tuple(self._devices())
        # kube-scheduler and its queues never see a pod that names its node.
        if devices and _text(self._at("nodeName")):
            message = "a pod with devices may not choose its node, because no queue would count it"
            self._document.add((*self.path, "nodeName"), "site.not-permitted", message, "remove it")
        pod = SubmittedPod(self.job, self.place, self.path, devices)
        for one in backend_of(self.place.scheduling.backend).pod_problems(pod):
            self._document.add(one.path, "site.not-permitted", one.message, one.remedy)

    def _devices(self) -> Iterator[YamlPath]:
        """The paths of containers' device requests."""
        known = vendors(devices_of(self.place.scheduling))
        for kind in _CONTAINERS:
            found = self._at(kind)
            for number in range(len(found) if isinstance(found, Items) else 0):
                limits = self._at(kind, number, "resources", "limits")
                for name, amount in limits.items() if isinstance(limits, Entries) else ():
                    if name.startswith(known) and _text(amount) not in _NOTHING:
                        yield (*self.path, kind, number, "resources", "limits", name)

    def _at(self, *path: str | int) -> object:
        return self._document.at((*self.path, *path))


def _text(value: object) -> str | None:
    return str(value).strip() if isinstance(value, Text) else None
