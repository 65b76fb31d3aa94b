"""Ports that the cluster needs are free, or held by the cluster itself."""

from __future__ import annotations

from pai_install.checks.result import Result, failed, passed, warned
from pai_install.parts import registry
from pai_install.parts.part import Port
from pai_install.preflight.evidence import Listener
from pai_install.preflight.model import Case, machine_check

_NODE_PORTS = range(30000, 32768)


@machine_check(
    id="ports",
    title="Ports of Kubernetes, etcd, the component store and the pod network are free",
    reads="listeners: every listening socket and its program",
    rule="FAIL when another program uses one of them",
    source="Kubernetes, etcd, flannel",
    remedy="stop the programs on these ports (list them with `sudo ss -lntup`), or move the programs to other ports",
)
def ports(case: Case) -> Result | None:
    """No other program holds a port of ours."""
    wanted = registry.ports(case.site, case.machine)
    taken = [text for need in wanted if (text := _taken(case, need))]
    if not taken:
        return passed(", ".join(map(str, wanted)), message="every port is free or used by pai-install")
    return failed(
        "other programs use ports of the cluster",
        value="; ".join(taken),
        expected="free",
    )


def _taken(case: Case, need: Port) -> str:
    """Returns the process on a port of ours, or "" if the port is free or used by the right process."""
    holders = [
        listener
        for listener in case.evidence.listeners
        if listener.port == need.port and listener.protocol == need.protocol and not _rightful(case, need, listener)
    ]
    if not holders:
        return ""
    root = case.evidence.has("identity") and case.evidence.identity.root
    nameless = "the kernel itself" if root else "a program that only root can see"
    names = dict.fromkeys(holder.program or nameless for holder in holders)
    return f"{need} ({need.purpose}): {', '.join(names)}"


def _rightful(case: Case, need: Port, listener: Listener) -> bool:
    name = listener.program_name
    if name in need.tolerated:
        return True
    # the kernel's own sockets have no program; without root no socket has one
    return case.evidence.installed and (not name or name in need.programs)


@machine_check(
    id="node-ports",
    title="No program listens on ports 30000-32767",
    reads="listeners",
    rule="WARN when a program other than kube-proxy does",
    source="Kubernetes",
    remedy="move these programs to other ports. A Service with the same port would receive their connections",
)
def node_ports(case: Case) -> Result | None:
    """No program listens at the ports of Services of type NodePort."""
    strangers = [
        listener
        for listener in case.evidence.listeners
        if listener.port in _NODE_PORTS and listener.protocol == "tcp" and listener.program_name != "kube-proxy"
    ]
    if not strangers:
        return passed(message="no program listens on ports 30000-32767")
    shown = ", ".join(dict.fromkeys(f"{one.port} {one.program}".strip() for one in strangers))
    return warned(
        "programs listen on ports that Kubernetes assigns to Services",
        value=shown,
        expected="none between 30000 and 32767",
    )
