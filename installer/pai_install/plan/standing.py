"""Is the cluster well, as its machines tell it? Pure: for runs that have nothing to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.plan.observed import Certificate, Observed
from pai_install.site import Site

RENEW_WITHIN_DAYS = 30
_DAY_S = 86400


def standing_findings(site: Site, version: str, observed: Mapping[str, Observed], *, now: float) -> tuple[Finding, ...]:
    """Nodes Ready at `version`, pods of the system running, certificates valid; now: seconds since 1970.

    Nodes and pods are what the first answering control plane saw.

    Machines that could not be observed are left out: they are named as unreachable already. Empty where no control
    plane was observed, or none has a cluster yet. One control plane that reaches the API is enough.
    """
    masters = [observed[machine.hostname] for machine in site.control_planes if machine.hostname in observed]
    views = [seen.cluster for seen in masters if seen.cluster is not None]
    if not views:
        return ()
    view = next((view for view in views if not view.get("error")), views[0])
    return (*_judge(site, version, observed, view), *_certificates(site, observed, now))


def versions(observed: Mapping[str, Observed]) -> dict[str, dict[str, str]]:
    """Host -> what runs there: os, kernel, and where it is a node kubernetes and container_runtime."""
    views = [seen.cluster for seen in observed.values() if seen.cluster and not seen.cluster.get("error")]
    nodes = {node["name"]: node for node in (views[0].get("nodes", []) if views else [])}
    return {host: _versions(seen, nodes.get(host, {})) for host, seen in observed.items()}


def _versions(seen: Observed, node: Mapping[str, Any]) -> dict[str, str]:
    found = {
        "kubernetes": str(node.get("version", "")),
        "container_runtime": str(node.get("runtime", "")),
        "os": f"{seen.os.id} {seen.os.version_id}".strip(),
        "kernel": seen.kernel,
    }
    return {name: text for name, text in found.items() if text}


def _judge(
    site: Site, version: str, observed: Mapping[str, Observed], cluster: Mapping[str, Any]
) -> tuple[Finding, ...]:
    if cluster.get("error"):
        return (
            Finding(
                "api",
                Verdict.FAIL,
                "cluster",
                "the API does not answer on any control plane",
                value=str(cluster["error"]),
                remedy="journalctl --unit kubelet on a control plane; ctr -n k8s.io tasks ls shows what runs",
            ),
        )
    nodes = {node["name"]: node for node in cluster.get("nodes", [])}
    names = [machine.hostname for machine in site.present_machines if machine.hostname in observed]
    return (*(_node(name, version, nodes.get(name)) for name in names), *_pods(cluster.get("pods", []), set(observed)))


def _node(name: str, version: str, node: Mapping[str, Any] | None) -> Finding:
    if node is None:
        return Finding(
            "node-ready", Verdict.FAIL, name, "is not in the cluster", expected="a node", remedy="apply --phase workers"
        )
    if not node["ready"]:
        remedy = "journalctl --unit kubelet on the machine"
        return Finding("node-ready", Verdict.FAIL, name, "is not Ready", "NotReady", "Ready", remedy)
    if node["version"] != version:
        message = "runs another version than planned"
        return Finding("node-ready", Verdict.FAIL, name, message, node["version"], version, "apply --phase runtime")
    if node["cordoned"]:
        remedy = f"kubectl uncordon {name}, when the reason is gone"
        return Finding("node-ready", Verdict.WARN, name, "is cordoned: no new jobs start there", remedy=remedy)
    if node.get("pressure"):
        said = ", ".join(node["pressure"])
        remedy = f"kubectl describe node {name}; pods are turned away or evicted there until it is gone"
        return Finding("node-ready", Verdict.WARN, name, f"is Ready, but says {said}", said, "none", remedy)
    return Finding("node-ready", Verdict.PASS, name, f"is Ready at {version}", version, version)


def _pods(pods: list[Mapping[str, Any]], observed: set[str]) -> tuple[Finding, ...]:
    watched = [pod for pod in pods if not pod["node"] or pod["node"] in observed]
    bad = [pod for pod in watched if not (pod["ready"] or pod["phase"] == "Succeeded")]
    if not bad:
        return (Finding("system-pods", Verdict.PASS, "cluster", f"all {len(watched)} pods of the system run"),)
    return tuple(
        Finding(
            "system-pods",
            Verdict.FAIL,
            pod["node"] or "cluster",
            f"pod {pod['name']} does not run",
            value=pod["why"] or pod["phase"],
            expected="Running and ready",
            remedy=f"kubectl describe pod --namespace {pod['name'].replace('/', ' ')}",
        )
        for pod in bad
    )


def _certificates(site: Site, observed: Mapping[str, Observed], now: float) -> Iterator[Finding]:
    for machine in site.present_machines:
        seen = observed.get(machine.hostname)
        if seen is None or not seen.certificates:
            continue
        unread = [entry for entry in seen.certificates if entry.expires is None]
        yield from (_unread(machine.hostname, entry) for entry in unread)
        dated = [(entry.expires, entry.path) for entry in seen.certificates if entry.expires is not None]
        if dated:
            yield _soonest(machine.hostname, *min(dated), now=now)


def _unread(host: str, entry: Certificate) -> Finding:
    message = f"until when {entry.path} is valid cannot be told"
    return Finding("certificates", Verdict.UNKNOWN, host, message, entry.problem, remedy="openssl x509 -text there")


def _soonest(host: str, expires: int, path: str, *, now: float) -> Finding:
    """The certificate of a machine that ends first."""
    date = datetime.fromtimestamp(expires, UTC).date().isoformat()
    left = int((expires - now) // _DAY_S)
    expected = f"more than {RENEW_WITHIN_DAYS} days left"
    if expires <= now:
        message = f"{path} has expired"
        return Finding("certificates", Verdict.FAIL, host, message, date, expected, _renewal(path))
    if left < RENEW_WITHIN_DAYS:
        message = f"{path} expires in {left} days"
        return Finding("certificates", Verdict.WARN, host, message, date, expected, _renewal(path))
    return Finding("certificates", Verdict.PASS, host, f"certificates valid until {date}", date, expected)


def _renewal(path: str) -> str:
    if "kubelet" in path and "apiserver" not in path:
        return "the kubelet should have renewed it: journalctl --unit kubelet; systemctl restart kubelet"
    return "kubeadm certs renew all on this machine, then restart its control plane pods"
