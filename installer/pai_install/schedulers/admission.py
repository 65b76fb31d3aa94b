"""Kubernetes' own objects beside what their user may make: `job submit` acts as one whom no one refuses. Pure.

The API server asks members of groups the same (users/policies.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from pai_install.documents.document import Document, Entries, Items, Text
from pai_install.documents.problem import YamlPath, short
from pai_install.jobs.kubernetes import Companion, Native, NativeJob
from pai_install.jobs.place import JobPlace
from pai_install.schedulers.job_fields import SubmittedPod
from pai_install.schedulers.registry import backend_of
from pai_install.scheduling.admission import vendors
from pai_install.scheduling.amounts import devices_of
from pai_install.scheduling.job_kinds import template_ways
from pai_install.scheduling.pod_limits import CAPABILITIES, VOLUMES

_CONTAINERS = ("containers", "initContainers")
_HOST = ("hostNetwork", "hostPID", "hostIPC")
_NOTHING = (None, "", "false", "0", "~", "null")


def refuse(native: Native, places: Mapping[str, JobPlace], logins: Collection[str]) -> None:
    """Adds a problem to the documents for what a job's user may not have. logins: Secrets of the group's."""
    secrets = {one.name for one in native.beside if one.kind == "Secret"}
    for one in native.beside:
        _companion(one, places[native.name].owner.user)
    for job in native.jobs:
        for way in template_ways(job.content, job.kind):
            _Pod(job, places[job.name], (*way, "spec"), secrets, frozenset(logins)).check()


def _companion(one: Companion, user: str) -> None:
    document = one.document
    if one.kind == "Secret" and "." in one.name and not one.name.startswith(f"{user}."):
        message = f"the Secret {short(one.name)} would be {short(one.name.partition('.')[0])}'s, and this is {user}'s"
        document.add(("metadata", "name"), "site.not-permitted", message, f"begin its name with {user}.")
    if one.kind == "Secret" and _text(document.at(("type",))) == "kubernetes.io/service-account-token":
        document.add(("type",), "site.not-permitted", "tokens of service accounts are for administrators to make")
    if one.kind == "Service" and _text(document.at(("spec", "type"))) not in (None, "", "ClusterIP"):
        message = "a Service of a job is for its own pods: no port of a machine, no address outside"
        document.add(("spec", "type"), "site.not-permitted", message, "remove type")
    outside: YamlPath = ("spec", "externalIPs")
    if one.kind == "Service" and document.at(outside) is not None:
        document.add(outside, "site.not-permitted", "a Service of a job has no externalIPs", "remove it")


@dataclass(frozen=True)
class _Pod:
    """A pod's specification at `path`. secrets: that the file itself has."""

    job: NativeJob
    place: JobPlace
    path: YamlPath
    secrets: Collection[str]
    logins: Collection[str]

    @property
    def _document(self) -> Document:
        return self.job.document

    def check(self) -> None:
        for key in _HOST:
            if _text(self._at(key)) not in _NOTHING:
                self._add((key,), f"pods of users have no {key}", "remove it")
        for key in ("serviceAccountName", "serviceAccount"):
            if _text(self._at(key)) not in (None, "", "default"):
                self._add((key,), "pods of users run as the service account default", "remove it")
        for number in self._numbers("volumes"):
            self._volume(("volumes", number))
        for number in self._numbers("imagePullSecrets"):
            self._secret(("imagePullSecrets", number, "name"), self.logins)
        for kind in _CONTAINERS:
            for number in self._numbers(kind):
                self._container((kind, number))
        self._scheduled()

    def _scheduled(self) -> None:
        """Fields by which a pod would pass its queue by."""
        devices = tuple(self._devices())
        if devices and _text(self._at("nodeName")):
            self._add(("nodeName",), "a pod with devices may not choose its node: no queue would count it", "remove it")
        pod = SubmittedPod(self.job, self.place, self.path, tuple((*self.path, *path) for path in devices))
        for one in backend_of(self.place.scheduling.backend).pod_problems(pod):
            self._document.add(one.path, "site.not-permitted", one.message, one.remedy)

    def _devices(self) -> Iterator[YamlPath]:
        """Where containers ask for devices."""
        known = vendors(devices_of(self.place.scheduling))
        for kind in _CONTAINERS:
            for number in self._numbers(kind):
                limits = self._at(kind, number, "resources", "limits")
                for name, amount in limits.items() if isinstance(limits, Entries) else ():
                    if name.startswith(known) and _text(amount) not in _NOTHING:
                        yield (kind, number, "resources", "limits", name)

    def _volume(self, at: YamlPath) -> None:
        found = self._at(*at)
        if isinstance(found, Entries) and not any(key in found for key in VOLUMES):
            kinds = ", ".join(key for key in found if key != "name") or "nothing"
            message = f"volumes of users are {', '.join(VOLUMES)}, and this is {short(kinds)}"
            self._add(at, message, "ask for a storage by its claim: pai-install storage list")
        self._secret((*at, "secret", "secretName"))
        for number in self._numbers(*at, "projected", "sources"):
            self._secret((*at, "projected", "sources", number, "secret", "name"))

    def _container(self, at: YamlPath) -> None:
        for number in self._numbers(*at, "ports"):
            if _text(self._at(*at, "ports", number, "hostPort")) not in _NOTHING:
                self._add((*at, "ports", number, "hostPort"), "pods of users have no hostPort", "remove it")
        context = (*at, "securityContext")
        if _text(self._at(*context, "privileged")) not in _NOTHING:
            self._add((*context, "privileged"), "containers of users are not privileged", "remove it")
        if _text(self._at(*context, "procMount")) not in (None, "", "Default"):
            self._add((*context, "procMount"), "containers of users have the procMount Default", "remove it")
        for number in self._numbers(*context, "capabilities", "add"):
            one = (*context, "capabilities", "add", number)
            if _text(self._at(*one)) not in CAPABILITIES:
                self._add(one, f"containers of users add no other capabilities than {', '.join(CAPABILITIES)}")
        for number in self._numbers(*at, "env"):
            self._secret((*at, "env", number, "valueFrom", "secretKeyRef", "name"))
        for number in self._numbers(*at, "envFrom"):
            self._secret((*at, "envFrom", number, "secretRef", "name"))

    def _secret(self, at: YamlPath, others: Collection[str] = ()) -> None:
        """Of a Secret that is neither the user's nor the file's no one says who may read it."""
        user, name = self.place.owner.user, _text(self._at(*at))
        if name and not name.startswith(f"{user}.") and name not in self.secrets and name not in others:
            message = f"the Secret {short(name)} is neither in this file nor {user}'s, whose names begin with {user}."
            self._add(at, message, "put it into the file, or make one of that name")

    def _at(self, *path: str | int) -> object:
        return self._document.at((*self.path, *path))

    def _numbers(self, *path: str | int) -> range:
        found = self._at(*path)
        return range(len(found) if isinstance(found, Items) else 0)

    def _add(self, path: YamlPath, message: str, remedy: str = "") -> None:
        self._document.add((*self.path, *path), "site.not-permitted", message, remedy)


def _text(value: object) -> str | None:
    return str(value).strip() if isinstance(value, Text) else None
