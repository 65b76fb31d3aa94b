"""The verbs of a ClusterCall, one function each: the changes of steps in the cluster. Arguments are plain data."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pai_install.cluster import read
from pai_install.cluster.client import ClusterClient, EvictionOutcome, Patch, PatchKind, Select
from pai_install.cluster.drain import blocking, jobs_among, to_evict, unmanaged
from pai_install.cluster.retries import answered
from pai_install.errors import PaiError
from pai_install.kube.model import Pod, Ref
from pai_install.kube.workloads import PodDisruptionBudget
from pai_install.plan.model import ClusterCall
from pai_install.system.words import plural, shortened

_POLL_S = 2.0
Arguments = Mapping[str, Any]
Notify = Callable[[str], None]


def make_call(cluster: ClusterClient, call: ClusterCall, notify: Notify = lambda _line: None) -> str:
    """Makes the call and describes its result. Raises PaiError if the cluster refuses or is unreachable.

    say: receives the reason of a long wait, on every change.
    """
    verb = SLOW_VERBS.get(call.verb)
    return _repeated(cluster, call) if verb is None else verb(cluster, call.arguments, _Changes(notify))


def _repeated(cluster: ClusterClient, call: ClusterCall) -> str:
    """Repeats the call if an API server stopped meanwhile, as on the removal of its control-plane node."""
    return answered(lambda: VERBS[call.verb](cluster, call.arguments))


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
    """Deletes objects. refs: kind, name, namespace ("" for none) of each. A missing object counts as deleted."""
    refs = [Ref(one["kind"], one["name"], one["namespace"]) for one in arguments["refs"]]
    cluster.delete(refs)
    return f"deleted {', '.join(map(str, refs))}"


class _Changes:
    """Passes a line on where it differs from the last one."""

    def __init__(self, notify: Notify) -> None:
        self._notify, self._last = notify, ""

    def __call__(self, line: str) -> None:
        if line != self._last:
            self._last = line
            self._notify(line)


def _drain(cluster: ClusterClient, arguments: Arguments, notify: Notify) -> str:
    """Drains a node. Arguments: node, grace_s (None: the pods' own), timeout_s, force, unmanaged (also evict pods
    without a controller).

    Evicts until no evictable pod is left.
    """
    node, force, evicted = arguments["node"], arguments["force"], set[Ref]()
    deadline = time.monotonic() + arguments["timeout_s"]
    # An eviction that a budget blocks now may pass in the next round.
    while pods := to_evict(answered(lambda: read.pods(cluster, node=node))):
        lost = unmanaged(pods)
        if lost and not (force or arguments.get("unmanaged")):
            raise _left(node, {pod.ref: "no controller would start the pod again" for pod in lost})
        left = {pod.ref: "the pod is still terminating" for pod in pods}
        # A pod that already ends needs no eviction. It still counts as left, because its process may run.
        refs, held = [pod.ref for pod in pods if not pod.terminating], dict[Ref, str]()
        for eviction in answered(partial(cluster.evict, refs, grace_s=arguments["grace_s"])):
            if eviction.outcome is EvictionOutcome.BLOCKED and force:
                # A deletion asks no disruption budget, unlike an eviction.
                cluster.delete([eviction.pod])
            elif eviction.outcome is EvictionOutcome.BLOCKED:
                held[eviction.pod] = eviction.message
        evicted.update(refs)
        left.update(_holding(cluster, [pod for pod in pods if pod.ref in held], held))
        if time.monotonic() >= deadline:
            raise _left(node, left)
        notify(
            f"{node}: {plural(len(left), 'pod')} left; {shortened([f'{ref}: {why}' for ref, why in left.items()], 2)}"
        )
        time.sleep(_POLL_S)
    return f"{plural(len(evicted), 'pod')} evicted from {node}"


def _holding(cluster: ClusterClient, pods: Sequence[Pod], messages: Mapping[Ref, str]) -> dict[Ref, str]:
    """Returns pod -> the names of the budgets that block it, and the API server's message."""
    rows = cluster.list(Select(("poddisruptionbudgets",)))[0] if pods else ()
    budgets = tuple(map(PodDisruptionBudget.parse, rows))
    names = {pod.ref: [f"{one.namespace}/{one.name}" for one in blocking(pod, budgets)] for pod in pods}
    return {
        ref: f"held by PodDisruptionBudget {', '.join(found)}: {messages[ref]}" if found else messages[ref]
        for ref, found in names.items()
    }


def _await_jobs(cluster: ClusterClient, arguments: Arguments, notify: Notify) -> str:
    """Waits until the node has no pods with work to lose. Arguments: node, timeout_s."""
    node, deadline = arguments["node"], time.monotonic() + arguments["timeout_s"]
    while jobs := jobs_among(to_evict(answered(lambda: read.pods(cluster, node=node)))):
        names = shortened([f"{pod.namespace}/{pod.name}" for pod in jobs])
        if time.monotonic() >= deadline:
            raise PaiError(
                f"cannot drain {node}: jobs are still running: {names}",
                code="jobs-not-ended",
                remedy=(
                    "wait again, stop them with --grace S, or run pai-install node uncordon. The node stays cordoned"
                ),
            )
        notify(f"{node} waits for jobs: {names}")
        time.sleep(_POLL_S)
    return f"no job runs on {node}"


def _await_node(cluster: ClusterClient, arguments: Arguments, notify: Notify) -> str:
    """Waits until the node is ready. Arguments: node, timeout_s.

    boot: id of the boot that must have ended, empty for any. version: of the kubelet. If given, the node's own pods
    must also run.
    """
    node, deadline = arguments["node"], time.monotonic() + arguments["timeout_s"]
    while problems := _unready(answered(lambda: read.occupancy(cluster, node), deadline - time.monotonic()), arguments):
        if time.monotonic() >= deadline:
            raise PaiError(
                f"cannot use {node}: it is not ready: {problems[0]}",
                code="node-not-ready",
                details="\n".join(problems[1:]),
                remedy=f"run pai-install status, and read journalctl -u kubelet on {node}",
            )
        notify(f"{node}: {problems[0]}")
        time.sleep(_POLL_S)
    return f"{node} is ready"


def _unready(seen: read.Occupancy, arguments: Arguments) -> list[str]:
    """Returns the missing conditions of the node."""
    node, boot, version = seen.node(arguments["node"]), arguments.get("boot", ""), arguments.get("version", "")
    if node is None:
        return ["it is no node"]
    # Until a machine goes down, its node is still Ready, with the old boot id.
    if not node.ready or (boot and node.boot_id == boot):
        return [node.why or "it is not ready"]
    if not version:
        return []
    older = [] if node.version == version else [f"its kubelet says version {node.version or 'nothing'}"]
    # Static pods and DaemonSets belong to the node. Pods of jobs may be pending for reasons of their own.
    own = [pod for pod in seen.pods_on(node.name) if pod.mirror or (pod.owner and pod.owner.kind == "DaemonSet")]
    return older + [
        f"pod {pod.namespace}/{pod.name} does not run: {pod.why or pod.phase}" for pod in own if not pod.well
    ]


def _left(node: str, left: Mapping[Ref, str]) -> PaiError:
    return PaiError(
        f"cannot drain {node}: {plural(len(left), 'pod remains', 'pods remain')}",
        code="pods-not-drained",
        details="\n".join(f"{ref}: {why}" for ref, why in left.items()),
        remedy=("resolve the reasons above and drain again, or run pai-install node uncordon. The node stays cordoned"),
    )


# each may be made again: the second time changes nothing
VERBS: Mapping[str, Callable[[ClusterClient, Arguments], str]] = {
    "patch": _patch,
    "apply": _apply,
    "delete": _delete,
}
# those that wait, and say for what
SLOW_VERBS: Mapping[str, Callable[[ClusterClient, Arguments, Notify], str]] = {
    "drain": _drain,
    "await-jobs": _await_jobs,
    "await-node": _await_node,
}
