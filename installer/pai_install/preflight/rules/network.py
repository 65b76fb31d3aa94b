"""Machines reach each other: addresses, packet sizes, firewalls, networks that overlap."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from pai_install.checks.result import Result, failed, passed, skipped, unknown, warned
from pai_install.parts import registry
from pai_install.preflight.evidence import PeerAnswer
from pai_install.preflight.model import Case, is_pod_interface, machine_check, own_interfaces
from pai_install.preflight.rules.leftovers import clean

# interfaces that our pod network makes, and nothing but a pod network
_OF_PODS = ("cni", "flannel")


@machine_check(
    id="mtu",
    title="All machines have the same MTU",
    reads="interfaces of all machines",
    rule="WARN when the MTU differs from that of most machines",
    remedy="set the same MTU in the network configuration of all machines",
)
def mtu(case: Case) -> Result | None:
    """The same packet size as the other machines."""
    own = own_interfaces(case.machine, case.evidence)
    if not own or own[0].mtu is None:
        return skipped("no interface with hostip was found")
    seen, usual = own[0].mtu, case.fleet.usual_mtu
    if seen == usual:
        return passed(str(seen), message=f"MTU {seen}, as on other machines")
    return warned(
        f"MTU {seen} on {own[0].name}, {usual} on most machines",
        value=str(seen),
        expected=str(usual),
        remedy=f"run sudo ip link set {own[0].name} mtu {usual} (also change the network configuration)",
    )


@machine_check(
    id="network-overlap",
    title="No route leads into pod_cidr or service_cidr",
    reads="routes, and pod_cidr and service_cidr in config.yaml",
    rule="FAIL for a route into one of them. WARN for a summary route that covers one of them",
    source="Kubernetes",
    remedy="choose another pod_cidr or service_cidr in config.yaml",
)
def overlap(case: Case) -> Result | None:
    """No route of the machine leads into the networks of pods and services."""
    settings = case.site.settings
    networks = {"pod_cidr": IPv4Network(settings.pod_cidr), "service_cidr": IPv4Network(settings.service_cidr)}
    clashes: dict[str, str] = {}
    around: list[str] = []
    for route in case.evidence.routes:
        for name, network in networks.items():
            if not _harmless(case, route.interface) and _overlaps(IPv4Network(route.network), network):
                text = f"{route.network} at {route.interface} and {name} {network}"
                # A wider route does not win: the kernel takes the narrowest one, which is the cluster's own.
                if IPv4Network(route.network).prefixlen < network.prefixlen:
                    around.append(text)
                else:
                    clashes[text] = route.interface
    return _clashing(case, clashes) if clashes else _summarised(around)


@machine_check(
    id="service-route",
    title="The machine has a route to the cluster's Services",
    reads="routes, and service_cidr in config.yaml",
    rule="FAIL on a control plane without a default route or a route that covers service_cidr. WARN on a worker",
    source="kubernetes/kubernetes issue 123120",
    remedy="add a default route. A route without a destination is enough",
)
def service_route(case: Case) -> Result | None:
    """The kernel looks for a route before a Service's address becomes that of a pod: without one nothing is sent.

    Pods do not notice, their packets come in at a bridge. The API server does: it asks webhooks and metrics-server.
    """
    services = IPv4Network(case.site.settings.service_cidr)
    if any(services.subnet_of(IPv4Network(route.network)) for route in case.evidence.routes):
        return passed(message="a route covers the addresses of Services")
    own = own_interfaces(case.machine, case.evidence)
    name = own[0].name if own else "INTERFACE"
    judge, who = (failed, "the API server reaches no") if case.machine.control_plane else (warned, "programs reach no")
    return judge(
        f"no route leads to the addresses of Services: {who} webhook and no other Service",
        value="no default route",
        expected=f"a default route, or one that covers {services}",
        remedy=f"run sudo ip route add default dev {name} metric 4096 (and in the network configuration). A route "
        "without a destination is enough",
    )


def _summarised(around: list[str]) -> Result:
    """A route around a whole network of the cluster loses against the cluster's own routes, which are longer."""
    if not around:
        return passed(message="no route leads into the cluster's networks")
    return warned(
        "a summary route covers networks of the cluster: hosts with such addresses outside the cluster are unreachable",
        value="; ".join(around),
        expected="networks that nothing else uses",
        remedy="choose another pod_cidr or service_cidr in config.yaml, unless no host has such an address",
    )


def _clashing(case: Case, clashes: dict[str, str]) -> Result:
    value = "; ".join(clashes)
    left = [name for name in dict.fromkeys(clashes.values()) if name.startswith(_OF_PODS)]
    if len(left) == len(set(clashes.values())):
        message = "interfaces of an earlier cluster have addresses in the cluster's networks"
        return failed(message, value=value, expected="no such interface", remedy=_delete(case, left))
    return failed(
        "networks of the cluster overlap with the machine's own",
        value=value,
        expected="networks that nothing else uses",
    )


def _delete(case: Case, interfaces: list[str]) -> str:
    if case.evidence.has("leftovers"):
        return clean(case.evidence.leftovers)
    return f"run {' && '.join(f'sudo ip link delete {name}' for name in interfaces)} if you need nothing on the machine"


def _harmless(case: Case, interface: str) -> bool:
    return case.evidence.installed and is_pod_interface(interface)


def _overlaps(route: IPv4Network, network: IPv4Network) -> bool:
    # The default route covers every address, and it clashes with nothing.
    return route.prefixlen > 0 and route.overlaps(network)


@machine_check(
    id="peers",
    title="The cluster's ports are open on control planes and neighbours",
    reads="peers: TCP connections and datagrams to the control planes and the next two machines",
    rule="FAIL when a machine is unreachable, or a port is filtered or rejected",
    remedy="check routes, VLANs, and firewalls between these machines. All machines must reach each hostip",
)
def peers(case: Case) -> Result | None:
    """The machines that it must reach answer, at the ports that the cluster uses."""
    answers = case.evidence.peers
    # A machine without evidence may be off. It has a finding of its own, and its silence says nothing about networks.
    known_answers = {name: answer for name, answer in answers.items() if name in case.fleet.evidence}
    if not known_answers:
        return skipped("the controller host reaches no other machine")
    silent = [name for name, answer in known_answers.items() if not answer.reached]
    if silent:
        return failed(
            f"cannot reach {', '.join(silent)}",
            value="no answer",
            expected="an answer",
        )
    filtered = [text for name, answer in known_answers.items() for text in _filtered(case, name, answer)]
    if filtered:
        return failed(
            "packets between machines are filtered",
            value="; ".join(filtered),
            expected="an answer at these ports, or a refusal",
            remedy="open these ports between the machines in firewalls and security groups (see docs/preflight.md)",
        )
    return passed(", ".join(known_answers), message="control planes and neighbours answer")


def _filtered(case: Case, name: str, answer: PeerAnswer) -> Iterator[str]:
    """Ports of one peer that do not answer although the peer is up."""
    ssh = case.fleet.machines[name].ssh.port
    for port, how in answer.tcp.items():
        # The SSH port only shows that the machine is up. The cluster itself does not use it.
        if how in ("silent", "rejected") and port != str(ssh):
            yield f"{port}/tcp of {name} is {how}"


@machine_check(
    id="packet-size",
    title="Packets as large as the MTU reach other machines",
    reads="peers: datagrams of 64 bytes and of the MTU",
    rule="FAIL when large packets reach no machine. WARN when they reach only some. SKIP when no machine answers",
    remedy="set the MTU of all machines to the MTU of the switches and tunnels between them",
)
def packet_size(case: Case) -> Result | None:
    """Packets as large as the MTU arrive at other machines."""
    answers = case.evidence.peers
    tried = {name: answer for name, answer in answers.items() if answer.small and answer.large is not None}
    if not tried:
        return skipped("no other machine answers datagrams")
    lost = [f"{name} ({answer.size} bytes)" for name, answer in tried.items() if not answer.large]
    if not lost:
        return passed(", ".join(tried), message="packets as large as the MTU arrive")
    towards = ", ".join(name for name, answer in tried.items() if not answer.large)
    judge = failed if len(lost) == len(tried) else warned
    return judge(f"packets as large as the MTU do not reach {towards}", ", ".join(lost), "an answer")


@machine_check(
    id="firewall",
    title="No firewall blocks the cluster",
    reads="firewall: ufw, firewalld, kernel chains with policy drop",
    rule="WARN for an active firewall. UNKNOWN without root",
    remedy="allow the cluster's ports from the site's machines, and all traffic from and to pods",
)
def firewall(case: Case) -> Result | None:
    """Checks that the machine has no firewall, or that its firewall accepts the cluster."""
    seen = case.evidence.firewall
    active = [name for name, on in (("ufw", seen.ufw), ("firewalld", seen.firewalld)) if on]
    # ufw and firewalld make such chains themselves. Their own name tells an administrator more.
    active += [f"a chain that drops by default: {name}" for name in seen.chains or () if not active]
    if not active and seen.chains is None:
        return unknown("only root may read the kernel's packet filters")
    if not active:
        return passed(message="no active firewall")
    ports = ", ".join(str(need) for need in registry.ports(case.site, case.machine) if not need.local)
    pods = case.site.settings.pod_cidr
    return warned(
        f"a firewall is on: {', '.join(active)}",
        value=", ".join(active),
        expected=f"open for {ports}",
        remedy=f"allow these ports from the site's machines, and all traffic from and to pods ({pods})",
    )
