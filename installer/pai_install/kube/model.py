"""Objects of the Kubernetes API as frozen values. A missing value is None (unknown), never a good one. Pure.

Each class has one parser, `parse`, which takes the object's JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from pai_install.kube.labels import SKU
from pai_install.kube.objects import (
    Condition,
    JsonObject,
    child,
    conditions,
    quantities,
    rows,
    state_of,
    text,
    words,
)

MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class Ref:
    """The reference of one object. kind: in kubectl's form, such as "node", "deployments.apps". namespace: "" for
    cluster scope.
    """

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}" + (f" in {self.namespace}" if self.namespace else "")


@dataclass(frozen=True, slots=True)
class Taint:
    """One taint of a node."""

    key: str
    effect: str
    value: str = ""

    def __str__(self) -> str:
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Node:
    """A node. ready, cordoned: None if the API does not report them. version without "v", runtime as "NAME VERSION".

    pressure: true conditions other than Ready, such as "DiskPressure". why: reason of its Ready condition. sku: its
    machine type for a scheduler, or "". capacity, allocatable: resource -> amount in bytes, cores, or devices. address:
    the first InternalIP.
    """

    name: str
    ready: bool | None = None
    cordoned: bool | None = None
    pressure: tuple[str, ...] = ()
    why: str = ""
    version: str = ""
    runtime: str = ""
    machine_id: str = ""
    boot_id: str = ""
    address: str = ""
    sku: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    capacity: Mapping[str, float] = field(default_factory=dict)
    allocatable: Mapping[str, float] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()

    @classmethod
    def parse(cls, node: JsonObject) -> Self:
        """Reads a Node."""
        metadata, spec, status = child(node, "metadata"), child(node, "spec"), child(node, "status")
        info, found = child(status, "nodeInfo"), conditions(status.get("conditions"))
        addresses = [
            text(row.get("address")) for row in rows(status.get("addresses")) if row.get("type") == "InternalIP"
        ]
        return cls(
            name=text(metadata.get("name")),
            ready=state_of(found, "Ready"),
            # the API leaves out what is false, so only a node without spec does not say
            cordoned=bool(spec.get("unschedulable")) if isinstance(node.get("spec"), Mapping) else None,
            pressure=tuple(
                sorted(entry.type[:63] for entry in found if entry.type != "Ready" and entry.status == "True")[:10]
            ),
            why=next((entry.message for entry in found if entry.type == "Ready"), ""),
            version=text(info.get("kubeletVersion")).removeprefix("v"),
            runtime=text(info.get("containerRuntimeVersion")).replace("://", " "),
            machine_id=text(info.get("machineID")),
            boot_id=text(info.get("bootID")),
            address=next(iter(addresses), ""),
            sku=words(metadata.get("labels")).get(SKU, ""),
            labels=words(metadata.get("labels")),
            annotations=words(metadata.get("annotations")),
            taints=tuple(
                Taint(text(row.get("key")), text(row.get("effect")), text(row.get("value")))
                for row in rows(spec.get("taints"))
            ),
            capacity=quantities(status.get("capacity")),
            allocatable=quantities(status.get("allocatable")),
            conditions=found,
        )


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller of an object."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod. ready: None where the API does not say. phase: "" where it does not say.

    owner: its controller. mirror: a static pod of the kubelet's. terminating: deleted, and still there.
    local_storage: has an emptyDir that is lost when the pod is removed. requests: resource -> amount of its containers.
    claims: names of the PersistentVolumeClaims that it uses.
    why: reasons and messages of the pod and of containers that wait or failed, else of conditions that do not hold.
    """

    name: str
    namespace: str = ""
    node: str = ""
    phase: str = ""
    ready: bool | None = None
    why: str = ""
    restarts: int = 0
    owner: Owner | None = None
    mirror: bool = False
    terminating: bool = False
    local_storage: bool = False
    priority: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, float] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    claims: tuple[str, ...] = ()

    @classmethod
    def parse(cls, pod: JsonObject) -> Self:
        """Reads a Pod."""
        metadata, spec, status = child(pod, "metadata"), child(pod, "spec"), child(pod, "status")
        found = conditions(status.get("conditions"))
        containers = rows(status.get("containerStatuses"))
        return cls(
            name=text(metadata.get("name")),
            namespace=text(metadata.get("namespace")),
            node=text(spec.get("nodeName")),
            phase=text(status.get("phase")),
            ready=state_of(found, "Ready"),
            why=_why(status),
            restarts=sum(row["restartCount"] for row in containers if isinstance(row.get("restartCount"), int)),
            owner=controller(metadata),
            mirror=MIRROR in child(metadata, "annotations"),
            terminating="deletionTimestamp" in metadata,
            local_storage=any("emptyDir" in row for row in rows(spec.get("volumes"))),
            priority=spec.get("priority") if isinstance(spec.get("priority"), int) else None,
            labels=words(metadata.get("labels")),
            requests=_requests(spec),
            conditions=found,
            claims=_claims(spec),
        )

    @property
    def ref(self) -> Ref:
        """What names it."""
        return Ref("pod", self.name, self.namespace)

    @property
    def finished(self) -> bool:
        """Whether its containers have ended permanently, well or not."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def well(self) -> bool:
        """Whether it runs and is ready, or has ended well."""
        return self.phase == "Succeeded" or (self.phase == "Running" and self.ready is True)


def controller(metadata: JsonObject) -> Owner | None:
    """Returns the owner that controls an object, or None."""
    # An object may have several owners. Only the one with this mark manages it.
    owners = [row for row in rows(metadata.get("ownerReferences")) if row.get("controller")]
    return Owner(text(owners[0].get("kind")), text(owners[0].get("name"))) if owners else None


def _claims(spec: JsonObject) -> tuple[str, ...]:
    named = (text(child(row, "persistentVolumeClaim").get("claimName")) for row in rows(spec.get("volumes")))
    return tuple(name for name in named if name)


def _why(status: JsonObject) -> str:
    own = _reason(status)
    states = [child(row, "state") for row in rows(status.get("containerStatuses"))]
    waiting = [_reason(child(state, "waiting")) for state in states]
    ended = [_reason(child(state, "terminated")) for state in states if child(state, "terminated").get("exitCode")]
    broken = [entry.message for entry in conditions(status.get("conditions")) if entry.status == "False"]
    words = [word for word in (own, *waiting, *ended) if word]
    return "; ".join(words or [word for word in broken if word])[:400]


def _reason(row: JsonObject) -> str:
    return f"{text(row.get('reason'))} {text(row.get('message'))}".strip()


def _requests(spec: JsonObject) -> dict[str, float]:
    """Returns the sum of the containers' requests. A limit replaces a missing request."""
    total: dict[str, float] = {}
    for container in rows(spec.get("containers")):
        resources = child(container, "resources")
        # Where a container names a limit alone, Kubernetes takes it as the request.
        requested = {**quantities(resources.get("limits")), **quantities(resources.get("requests"))}
        for name, amount in requested.items():
            total[name] = total.get(name, 0.0) + amount
    return total
