"""The verbs of a ClusterCall, one function each: what steps may do to the cluster. Arguments are plain data."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from pai_install.cluster import read
from pai_install.cluster.client import ClusterClient, EvictionOutcome, Patch, PatchKind
from pai_install.cluster.drain import to_evict, unmanaged
from pai_install.cluster.model import Ref
from pai_install.errors import PaiError
from pai_install.plan.model import ClusterCall
from pai_install.system.words import plural

_POLL_S = 2.0
Arguments = Mapping[str, Any]


def make_call(cluster: ClusterClient, call: ClusterCall) -> str:
    """Makes the call and returns what was done. Raises PaiError when the cluster refuses or does not answer."""
    return VERBS[call.verb](cluster, call.arguments)


def _patch(cluster: ClusterClient, arguments: Arguments) -> str:
    """kind, name, namespace (where it has one), body: a merge patch."""
    ref = Ref(arguments["kind"], arguments["name"], arguments.get("namespace", ""))
    cluster.patch([Patch(ref, arguments["body"], PatchKind.MERGE)])
    return f"patched {ref}"


def _apply(cluster: ClusterClient, arguments: Arguments) -> str:
    """objects, force: as ClusterClient.apply takes them."""
    made = cluster.apply(arguments["objects"], force=arguments["force"])
    return f"applied {plural(len(made), 'object')}"


def _delete(cluster: ClusterClient, arguments: Arguments) -> str:
    """refs: kind, name, namespace ("" for none) of each. What is gone already counts as deleted."""
    refs = [Ref(one["kind"], one["name"], one["namespace"]) for one in arguments["refs"]]
    cluster.delete(refs)
    return f"deleted {', '.join(map(str, refs))}"


def _drain(cluster: ClusterClient, arguments: Arguments) -> str:
    """node, grace_s (None: the pods' own), timeout_s, force. Evicts until no pod is left that must go."""
    node, force, evicted = arguments["node"], arguments["force"], set[Ref]()
    deadline = time.monotonic() + arguments["timeout_s"]
    while pods := to_evict(read.pods(cluster, node=node)):
        lost = unmanaged(pods)
        if lost and not force:
            raise _left(node, {pod.ref: "no controller would start the pod again" for pod in lost})
        left = {pod.ref: "the pod is still terminating" for pod in pods}
        refs = [pod.ref for pod in pods if not pod.terminating]
        for eviction in cluster.evict(refs, grace_s=arguments["grace_s"]):
            if eviction.outcome is EvictionOutcome.BLOCKED and force:
                cluster.delete([eviction.pod])
            elif eviction.outcome is EvictionOutcome.BLOCKED:
                left[eviction.pod] = eviction.message
        evicted.update(refs)
        if time.monotonic() >= deadline:
            raise _left(node, left)
        time.sleep(_POLL_S)
    return f"{plural(len(evicted), 'pod')} evicted from {node}"


def _settle(cluster: ClusterClient, arguments: Arguments) -> str:
    """node, version ("" for any), timeout_s. Waits until the node is Ready at that version and its pods run.

    Pods that end anyway, and those of a controller that starts them elsewhere, are not waited for.
    """
    name, version = arguments["node"], arguments["version"]
    deadline = time.monotonic() + arguments["timeout_s"]
    while problems := _unsettled(read.occupancy(cluster, name), name, version):
        if time.monotonic() >= deadline:
            raise PaiError(
                f"{name} is not well after {arguments['timeout_s']} s",
                details="\n".join(problems),
                remedy="the node stays cordoned; resolve the reasons above and run the same command again",
            )
        time.sleep(_POLL_S)
    return f"{name} is Ready" + (f" at {version}" if version else "")


def _unsettled(seen: read.Occupancy, name: str, version: str) -> list[str]:
    """What keeps a node from being well."""
    node = seen.node(name)
    if node is None or node.ready is not True:
        return [node.why or "NotReady" if node else "not a node of the cluster"]
    problems = [f"the kubelet says version {node.version}"] if version and node.version != version else []
    fixed = [pod for pod in seen.pods if pod.mirror or (pod.owner and pod.owner.kind == "DaemonSet")]
    return problems + [f"pod {pod.namespace}/{pod.name}: {pod.why or pod.phase}" for pod in fixed if not pod.well]


def _left(node: str, left: Mapping[Ref, str]) -> PaiError:
    return PaiError(
        f"{plural(len(left), 'pod is', 'pods are')} still on {node}",
        details="\n".join(f"{ref}: {why}" for ref, why in left.items()),
        remedy="the node stays cordoned; resolve the reasons above and drain again, or run `node uncordon`",
    )


VERBS: Mapping[str, Callable[[ClusterClient, Arguments], str]] = {
    "patch": _patch,
    "apply": _apply,
    "delete": _delete,
    "drain": _drain,
    "settle": _settle,
}
