"""Cluster conditions from the observation of machines, for operations that change nothing. Pure.

playbooks/module_utils/pai_cluster_state.py has the same verdicts, word for word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.health.cluster.view import ClusterView, view_of
from pai_install.kube.model import Node, Pod
from pai_install.plan.observed import Observed
from pai_install.site import Site


def cluster_findings(site: Site, version: str, observed: Mapping[str, Observed]) -> tuple[Finding, ...]:
    """Returns findings on nodes (Ready, at `version`) and system pods, from the first responding control-plane node.

    Unreachable machines are omitted, because another finding names them. Empty if no control-plane node was observed or
    none has a cluster. One connection to the API is enough.
    """
    view = view_of(site, observed)
    if view is None:
        return ()
    return _judge(site, version, observed, view)


def versions(site: Site, observed: Mapping[str, Observed]) -> dict[str, dict[str, str]]:
    """Returns host -> versions: os, kernel, and for nodes kubernetes and container_runtime."""
    view = view_of(site, observed)
    nodes = {node.name: node for node in view.nodes} if view else {}
    return {host: _versions(seen, nodes.get(host, Node(host))) for host, seen in observed.items()}


def _versions(seen: Observed, node: Node) -> dict[str, str]:
    found = {
        "kubernetes": node.version,
        "container_runtime": node.runtime,
        "os": f"{seen.os.id} {seen.os.version_id}".strip(),
        "kernel": seen.kernel,
    }
    return {name: text for name, text in found.items() if text}


def _judge(site: Site, version: str, observed: Mapping[str, Observed], view: ClusterView) -> tuple[Finding, ...]:
    if view.error:
        return (
            Finding(
                "api",
                Verdict.FAIL,
                "cluster",
                "the API does not answer on any control plane",
                value=view.error,
                remedy="check journalctl --unit kubelet, and ctr -n k8s.io tasks ls on a control-plane node",
            ),
        )
    names = [machine.hostname for machine in site.nodes if machine.hostname in observed]
    pods = [pod for pod in view.pods if not pod.node or pod.node in observed]
    nodes = tuple(node_finding(name, view.node(name), version) for name in names)
    return (*nodes, *pod_findings(pods))


def node_finding(name: str, node: Node | None, version: str) -> Finding:
    """The verdict on the node of a machine, at that version."""
    if node is None:
        remedy = "run pai-install apply, and check journalctl --unit kubelet on the machine"
        return _node(Verdict.FAIL, name, "not a node of the cluster", expected="a node", remedy=remedy)
    if node.ready is not True:
        remedy = "check journalctl --unit kubelet on the machine"
        return _node(Verdict.FAIL, name, "node is not Ready", node.why or "NotReady", "Ready", remedy)
    if node.version != version:
        message = "node does not run the planned version"
        return _node(Verdict.FAIL, name, message, node.version or "unknown", version, "run pai-install upgrade")
    # The API may not have said it, and an unknown value is no PASS.
    if node.cordoned is not False:
        remedy = f"run kubectl uncordon {name}, once the reason is resolved"
        return _node(Verdict.WARN, name, "node is cordoned: no new jobs start there", remedy=remedy)
    if node.pressure:
        pressure = ", ".join(node.pressure)
        remedy = f"run kubectl describe node {name}. The node rejects or evicts pods while it is under pressure"
        return _node(Verdict.WARN, name, f"node is Ready, but reports {pressure}", pressure, "none", remedy)
    return _node(Verdict.PASS, name, f"node is Ready at {version}", version, version)


def _node(verdict: Verdict, name: str, message: str, value: str = "", expected: str = "", remedy: str = "") -> Finding:
    return Finding("node-ready", verdict, name, message, value, expected, remedy)


def pod_findings(pods: Sequence[Pod]) -> tuple[Finding, ...]:
    """The verdicts on the pods of the system."""
    if not pods:
        remedy = "run kubectl get pods --all-namespaces"
        message = "no system pods exist"
        return (Finding("system-pods", Verdict.FAIL, "cluster", message, "", "Running and ready", remedy),)
    bad = [pod for pod in pods if not pod.well]
    if not bad:
        return (Finding("system-pods", Verdict.PASS, "cluster", f"all {len(pods)} system pods run"),)
    return tuple(
        Finding(
            "system-pods",
            Verdict.FAIL,
            pod.node or "cluster",
            f"pod {pod.namespace}/{pod.name} does not run",
            value=pod.why or pod.phase,
            expected="Running and ready",
            remedy=f"run kubectl describe pod --namespace {pod.namespace} {pod.name}",
        )
        for pod in bad
    )
