"""Messages of kube-scheduler and HiveD: checked, and read no further than needed. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pai_install.agents.common.http import Response
from pai_install.agents.common.values import InvalidJsonError, child, meta, parse, text

Verdict = Literal["placed", "preempt", "wait", "uninformed", "error"]
# HiveD's words, pkg/scheduler/scheduler.go: filterRoutine, generalScheduleAdmissionCheck
_PREEMPTIBLE = re.compile(r"node\(.+\) has preemptible Pods: ", re.DOTALL)
_UNINFORMED = "has not been informed to the scheduler"
# a pod is at most 1.5 MiB, a list of affinity groups much more
_MAX_BODY = 32 << 20
_JOB = "pai-install/job"
_SPEC = "hivedscheduler.microsoft.com/pod-scheduling-spec"
# a line below affinityGroup. Members have no name
_GANG_NAME = re.compile(r"""(?m)^ +name: *['"]?([^'"\s]{1,512})['"]? *$""")
_UID = re.compile(r"[A-Za-z0-9._-]{1,128}")


class RefusedError(Exception):
    """A request is not kube-scheduler's, or an answer not HiveD's. Says what is wrong, without its content."""


@dataclass(frozen=True)
class PodCall:
    """What filter and preempt are asked: uid of the pod, the pod as it was sent, the nodes that may take it."""

    uid: str
    pod: Mapping[str, Any]
    nodes: tuple[str, ...]

    @property
    def job(self) -> str:
        """NAMESPACE/NAME of the pod's job; of the pod where no label names a job."""
        name = text(child(self.pod, "metadata", "labels").get(_JOB)) or meta(self.pod, "name")
        return f"{meta(self.pod, 'namespace')}/{name}"

    @property
    def gang(self) -> str:
        """The name of the pod's affinity group at HiveD."""
        named = _GANG_NAME.search(text(child(self.pod, "metadata", "annotations").get(_SPEC)))
        return named[1] if named else f"{meta(self.pod, 'namespace')}/{meta(self.pod, 'name')}"


@dataclass(frozen=True)
class Gang:
    """An affinity group as HiveD shows it. pods: UIDs of those that have cells. nodes: where its cells are."""

    name: str
    pods: frozenset[str]
    nodes: frozenset[str]


def filter_call(body: bytes) -> PodCall:
    """Reads ExtenderArgs with node names. Raises RefusedError."""
    args = _object(body)
    nodes = args.get("NodeNames")
    # kube-scheduler sends names only if nodeCacheCapable is set. Whole nodes would be megabytes per pod.
    if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
        raise RefusedError("NodeNames is not a list of names")
    return _pod_call(args, nodes)


def with_nodes(body: bytes, nodes: Iterable[str]) -> bytes:
    """ExtenderArgs with these nodes too."""
    args = _object(body)
    return json.dumps({**args, "NodeNames": list(dict.fromkeys((*args["NodeNames"], *nodes)))}).encode()


def preempt_call(body: bytes) -> PodCall:
    """Reads ExtenderPreemptionArgs with identifiers. Raises RefusedError."""
    args = _object(body)
    return _pod_call(args, _mapping(args.get("NodeNameToMetaVictims") or {}, "NodeNameToMetaVictims"))


def bind_call(body: bytes) -> str:
    """Reads ExtenderBindingArgs; gives the pod's UID. Raises RefusedError."""
    args = _object(body)
    for name in ("PodName", "PodNamespace", "PodUID", "Node"):
        if not isinstance(args.get(name), str) or not args[name]:
            raise RefusedError(f"{name} is not a name")
    return str(args["PodUID"])


def preemption_of(call: PodCall) -> bytes:
    """What HiveD is asked on behalf of kube-scheduler: whom to evict so that the pod fits on the nodes of the call."""
    return json.dumps({"Pod": call.pod, "NodeNameToMetaVictims": {node: {"Pods": []} for node in call.nodes}}).encode()


def verdict(answer: Response) -> Verdict:
    """What HiveD's answer to a filter call means for the pod. Raises RefusedError for one that is not HiveD's."""
    if answer.status != 200:
        return "error"
    result = _object(answer.body)
    failed = result.get("FailedNodes") or {}
    if error := result.get("Error"):
        return "uninformed" if _UNINFORMED in str(error) else "error"
    if result.get("NodeNames"):
        return "placed"
    reasons = _mapping(failed, "FailedNodes").values()
    # HiveD has no field for this. Its text is the only sign, and v0.3.4 is the last version.
    return "preempt" if any(_PREEMPTIBLE.match(str(reason)) for reason in reasons) else "wait"


def chosen_nodes(answer: Response) -> frozenset[str]:
    """The nodes that HiveD chose for a pod. Raises RefusedError."""
    names = _object(answer.body).get("NodeNames") or []
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


def held(nodes: Iterable[str]) -> Response:
    """The answer that lets a pod wait for room on the nodes of its devices."""
    why = f"the gang of the pod has its devices on {', '.join(sorted(nodes))}, which cannot take the pod now"
    answer = {"Nodes": None, "NodeNames": None, "FailedNodes": {"hived-bridge": why}, "Error": ""}
    return Response(200, json.dumps(answer).encode())


def victims(answer: Response) -> Mapping[str, frozenset[str]]:
    """Node -> UIDs of the pods that HiveD wants evicted there. Raises RefusedError."""
    if answer.status != 200:
        raise RefusedError(f"HTTP {answer.status}")
    named = _mapping(_object(answer.body).get("NodeNameToMetaVictims") or {}, "NodeNameToMetaVictims")
    found = {node: frozenset(_victim_uids(entry)) for node, entry in named.items()}
    return {node: uids for node, uids in found.items() if uids}


def gangs(answer: Response) -> tuple[Gang, ...]:
    """HiveD's list of affinity groups. Raises RefusedError."""
    if answer.status != 200:
        raise RefusedError(f"HTTP {answer.status}")
    items = _object(answer.body).get("items") or []
    if not isinstance(items, list):
        raise RefusedError("items is not a list")
    return tuple(_gang(item) for item in items)


def gang(answer: Response) -> Gang:
    """One affinity group of HiveD. Raises RefusedError, too if HiveD has none of that name."""
    if answer.status != 200:
        raise RefusedError(f"HTTP {answer.status}")
    return _gang(_object(answer.body))


def _gang(item: Any) -> Gang:
    """Without the pods that have no UID."""
    pods = child(item, "status").get("allocatedPods")
    uids = (uid for uid in pods if isinstance(uid, str) and _UID.fullmatch(uid)) if isinstance(pods, list) else ()
    return Gang(meta(item, "name"), frozenset(uids), frozenset(child(item, "status", "physicalPlacement")))


def _victim_uids(entry: object) -> list[str]:
    pods = _mapping(entry or {}, "victims").get("Pods") or []
    if not isinstance(pods, list):
        raise RefusedError("Pods is not a list")
    return [_uid(_mapping(pod, "a victim").get("UID")) for pod in pods]


def _pod_call(args: Mapping[str, Any], nodes: Iterable[str]) -> PodCall:
    pod = _mapping(args.get("Pod"), "Pod")
    if not meta(pod, "name") or not meta(pod, "namespace"):
        raise RefusedError("the pod has no name or no namespace")
    return PodCall(_uid(child(pod, "metadata").get("uid")), pod, tuple(nodes))


def _uid(value: object) -> str:
    if not isinstance(value, str) or not _UID.fullmatch(value):
        raise RefusedError("a pod has no UID")
    return value


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        return _mapping(parse(body, max_size=_MAX_BODY), "the body")
    except InvalidJsonError as error:
        raise RefusedError("the body is not JSON") from error


def _mapping(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RefusedError(f"{what} is not an object")
    return value
