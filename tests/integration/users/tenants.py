"""Each scheduler's cluster as its members see it: real kinds, roles, and every policy, and good jobs of each kind."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from http.client import HTTPSConnection

import pytest

from pai_install.schedulers.compile import objects_of
from pai_install.scheduling.admission import RequestKind, Rule, clusters_at, in_force, policy, priorities_at
from pai_install.scheduling.job_kinds import KINDS, POD, JobKind
from pai_install.scheduling.job_queue import (
    CLUSTER_LABEL,
    HIVED_MARKER,
    HIVED_SCHEDULER,
    HIVED_SPEC,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    QUEUE_NOTE,
)
from pai_install.scheduling.model import BACKENDS, Backend
from pai_install.users.administration import administration_policies
from pai_install.users.job_secrets import job_secrets
from pai_install.users.kinds import kinds_at
from pai_install.users.model import OWNER
from pai_install.users.policies import policies
from pai_install.users.recorder import recorder_objects
from pai_install.users.rights import roles, submitter_bindings
from tests.integration.control_plane import Api, Json
from tests.integration.shared_control_plane import ControlPlane
from tests.integration.upstream_manifests import definitions_of
from tests.integration.users.attacks import templates_of
from tests.integration.users.conftest import MEMBERS, NAMESPACES, joined
from tests.integration.users.test_rights import SPECS, asked
from tests.virtual_clusters import cluster, gpus, share, site, with_backend
from tests.waiting import until

__all__ = ["tenants"]

MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
SUPPLY = gpus("a100", 4)
SITE = site(
    SUPPLY,
    clusters=(
        cluster("vision", share(SUPPLY, 8), groups=("vision",), highest="prod"),
        cluster("spare", share(SUPPLY, 4), groups=("vision",), highest="test"),
        cluster("speech", share(SUPPLY, 8), groups=("speech",)),
    ),
)
# of the administrators' own services
SITE_PRIORITY = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "site-services"},
    "value": 1_000_000,
}
# what the policies need of a scheduler's objects; what they count is its program's
IN_FORCE = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "PriorityClass")
UPSTREAM = ("jobset", "kueue", "training-operator", "volcano")


@dataclass(frozen=True)
class Tenants:
    """Members of a cluster with one scheduler, and its administrator."""

    backend: Backend
    admin: Api
    of: Mapping[str, Member]


@pytest.fixture(scope="module", params=BACKENDS)
def tenants(request: pytest.FixtureRequest, control_plane: ControlPlane) -> Tenants:
    """A cluster with the scheduler of the parameter."""
    backend: Backend = request.param

    def install(_: Api) -> Mapping[str, Api]:
        return installed(control_plane.prepared("members", members), backend)

    found = control_plane.prepared(f"members of {backend}", install)
    return Tenants(backend, control_plane.servers.api, {name: Member(api) for name, api in found.items()})


def members(api: Api) -> Mapping[str, Api]:
    """Everybody with a token; all kinds that any scheduler brings."""
    for namespace in NAMESPACES:
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for definition in definitions():
        api.apply(definition)
    for one in roles("kueue"):
        api.apply(one)
    for kind in (kind for backend in BACKENDS for kind in kinds_at(backend)):
        until(lambda kind=kind: asked(api, "GET", path_of(kind)) == "")  # type: ignore[misc]
    return {name: api.as_(joined(api, name, places)["status"]["token"]) for name, places in MEMBERS.items()}


def installed(members: Mapping[str, Api], backend: Backend) -> Mapping[str, Api]:
    """Returns once all policies of the scheduler count."""
    admin, alice = members["alice"].as_(Api.token), Member(members["alice"])
    for one in objects(backend):
        admin.apply(one)
    until(lambda: "sentinel" in alice.refusal("POST", f"{CONFIG_MAPS}?dryRun=All", SENTINEL))
    return members


CONFIG_MAPS = "/api/v1/namespaces/vision/configmaps"
SENTINEL = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "sentinel", "namespace": "vision", "labels": {OWNER: "alice"}},
}


def objects(backend: Backend) -> Iterator[Json]:
    """What the add-ons make of the site, in their order, and last a policy by which is seen that all count."""
    yield from roles(backend)
    yield from submitter_bindings(NAMESPACES)
    yield from (it for it in objects_of(with_backend(SITE, backend)) if it["kind"] in IN_FORCE)
    clusters = {place: [it.name for it in found] for place, found in clusters_at(SITE).items()}
    yield from policies(backend, NAMESPACES, clusters, priorities_at(SITE))
    yield SITE_PRIORITY
    yield from administration_policies({name: name for name in NAMESPACES})
    yield from job_secrets(backend, NAMESPACES)
    yield from (it for it in recorder_objects(backend, NAMESPACES) if it["kind"] in IN_FORCE)
    refuses = Rule("object.metadata.name != 'sentinel'", "'sentinel'")
    yield from in_force(policy("zz", RequestKind("", "v1", "configmaps"), [refuses], {}), NAMESPACES)


def definitions() -> Iterator[Json]:
    """The kinds of the upstream projects as they are installed, and any content where none is."""
    upstream = (it for component in UPSTREAM for it in definitions_of(component))
    kinds = (it for it in upstream if it["kind"] == "CustomResourceDefinition")
    found = {it["metadata"]["name"]: without_webhooks(it) for it in kinds}
    yield from found.values()
    for kind in KINDS:
        if kind.group != "batch" and f"{kind.resource}.{kind.group}" not in found:
            yield stand_in(kind)


def without_webhooks(it: Json) -> Json:
    """No controller is here that would answer."""
    it["spec"].pop("conversion", None)
    it.pop("status", None)
    return it


def stand_in(kind: JobKind) -> Json:
    plain = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": plain}}
    names = {"plural": kind.resource, "singular": kind.name.lower(), "kind": kind.name}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.resource}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": names,
            "versions": [{**version, "subresources": {"status": {}}}],
        },
    }


def path_of(kind: JobKind, name: str = "", namespace: str = "vision") -> str:
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    return f"{base}/namespaces/{namespace}/{kind.resource}" + (f"/{name}" if name else "")


def kinds_of(backend: Backend) -> Sequence[JobKind]:
    """All that a member may create there that becomes pods."""
    return (*kinds_at(backend), POD)


class Member:
    """A member's requests over one connection: there are thousands."""

    def __init__(self, api: Api) -> None:
        trust = ssl.create_default_context(cafile=str(api.authority))
        self.api = api
        self._connection = HTTPSConnection("127.0.0.1", api.port, context=trust, timeout=60)

    def ask(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> tuple[int, Json]:
        """The status and the content of an answer."""
        headers = {"Authorization": f"Bearer {self.api.token}", "Content-Type": kind}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._connection.getresponse()
        text = answer.read()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, {"message": text.decode(errors="replace")}

    def refusal(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> str:
        """Why it is refused; empty where it is not."""
        status, found = self.ask(method, path, body, kind)
        return "" if status < 300 else str(found.get("message") or status)


def good(backend: Backend, kind: JobKind, name: str, owner: str = "alice", spec: Json | None = None) -> Json:
    """A job of one pod with a device, as members of vision write it for their scheduler. A pod has none with Kueue."""
    template: Json = {
        "metadata": {"labels": {OWNER: owner}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}], **deepcopy(spec or {})},
    }
    metadata: Json = {"name": name, "namespace": "vision", "labels": {OWNER: owner, CLUSTER_LABEL: "vision"}}
    if kind is POD:
        made = {**template, "metadata": {**metadata, **deepcopy(template["metadata"])}}
    else:
        made = {"metadata": metadata, "spec": deepcopy(SPECS[kind.full_name](template))}
    made |= {"apiVersion": kind.api, "kind": kind.name}
    QUEUED[backend](made, kind, "vision")
    if kind.name == "Job" and kind.group == "batch":
        made["spec"]["suspend"] = True
    return made


def devices(pod: Json, name: str = "nvidia.com/gpu", count: str = "1") -> None:
    pod["spec"]["containers"][0].setdefault("resources", {"limits": {name: count}})


def _kueue(made: Json, kind: JobKind, queue: str) -> None:
    if kind is POD or "kueue" not in kind.queued:
        return
    made["metadata"]["labels"] |= {QUEUE_LABEL: queue, PRIORITY_LABEL: "test"}
    for pod in templates_of(kind, made):
        devices(pod)


def _volcano(made: Json, kind: JobKind, queue: str) -> None:
    if kind.group == "batch.volcano.sh":
        made["spec"] |= {"queue": queue, "schedulerName": "volcano", "priorityClassName": "test"}
    if kind.operated:
        made["spec"]["runPolicy"] = {"schedulingPolicy": {"queue": queue}}
    for pod in templates_of(kind, made):
        pod["metadata"].setdefault("annotations", {})[QUEUE_NOTE] = queue
        pod["spec"] |= {"schedulerName": "volcano", "priorityClassName": "test"}
        devices(pod)


def _hived(made: Json, kind: JobKind, queue: str) -> None:
    lines = (f"virtualCluster: {queue}", "priority: 10", "leafCellNumber: 1", "ignoreK8sSuggestedNodes: false")
    for pod in templates_of(kind, made):
        pod["metadata"].setdefault("annotations", {})[HIVED_SPEC] = "\n".join(lines)
        pod["spec"] |= {"schedulerName": f"{HIVED_SCHEDULER}{queue}", "priorityClassName": "test"}
        devices(pod, HIVED_MARKER)


def _default(made: Json, kind: JobKind, queue: str) -> None:
    del queue  # quotas count pods by their namespace
    for pod in templates_of(kind, made):
        pod["spec"] |= {"priorityClassName": "test"}
        devices(pod)


QUEUED = {"kueue": _kueue, "volcano": _volcano, "hived": _hived, "default": _default}


def refused(answer: str) -> bool:
    """Whether a policy, the roles, or the kind itself refused what was asked, and not how it was written."""
    return any(word in answer for word in ("ValidatingAdmissionPolicy", "cannot ", "immutable", "Unsupported value"))
