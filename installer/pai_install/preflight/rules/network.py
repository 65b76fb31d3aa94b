"""Machines reach each other: addresses, packet sizes, firewalls, networks that overlap."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from pai_install.preflight import needs
from pai_install.preflight.evidence import PeerAnswer
from pai_install.preflight.model import (
    Case,
    Check,
    Ruling,
    failed,
    had,
    is_pod_interface,
    own_interfaces,
    passed,
    skipped,
    unknown,
    warned,
)
from pai_install.preflight.rules.leftovers import clean

# interfaces that our pod network makes, and nothing but a pod network
_OF_PODS = ("cni", "flannel")


def mtu(case: Case) -> Ruling | None:
    """The same packet size as the other machines."""
    had(case.evidence.interfaces, "interfaces")
    own = own_interfaces(case.machine, case.evidence)
    if not own or own[0].mtu is None:
        return skipped("the interface with the site's address is not known")
    seen, usual = own[0].mtu, case.fleet.usual_mtu
    if seen == usual:
        return passed(f"MTU {seen}, as on the others", str(seen))
    return warned(
        f"MTU {seen} on {own[0].name}, {usual} on most machines",
        value=str(seen),
        expected=str(usual),
        remedy=f"sudo ip link set {own[0].name} mtu {usual} (and in the network configuration), or change the others",
    )


def overlap(case: Case) -> Ruling | None:
    """No route of the machine leads into the networks of pods and services."""
    settings = case.site.settings
    networks = {"pod_cidr": IPv4Network(settings.pod_cidr), "service_cidr": IPv4Network(settings.service_cidr)}
    clashes = {
        f"{route.network} at {route.interface} and {name} {network}": route.interface
        for route in had(case.evidence.routes, "routes")
        for name, network in networks.items()
        if not _harmless(case, route.interface) and _overlaps(IPv4Network(route.network), network)
    }
    if not clashes:
        return passed("no route leads into the cluster's networks")
    value = "; ".join(clashes)
    left = [name for name in dict.fromkeys(clashes.values()) if name.startswith(_OF_PODS)]
    if len(left) == len(set(clashes.values())):
        message = "an earlier cluster left interfaces behind that have addresses of the cluster's networks"
        return failed(message, value=value, expected="no such interface", remedy=_delete(case, left))
    return failed(
        "networks of the cluster overlap with the machine's own",
        value=value,
        expected="networks that nothing else uses",
        remedy="choose another pod_cidr or service_cidr in config.yaml",
    )


def _delete(case: Case, interfaces: list[str]) -> str:
    if case.evidence.leftovers is not None:
        return clean(case.evidence.leftovers)
    return f"if nothing on the machine is needed: {'; '.join(f'sudo ip link delete {name}' for name in interfaces)}"


def _harmless(case: Case, interface: str) -> bool:
    return case.evidence.ours and is_pod_interface(interface)


def _overlaps(route: IPv4Network, network: IPv4Network) -> bool:
    return route.prefixlen > 0 and route.overlaps(network)


def peers(case: Case) -> Ruling | None:
    """The machines that it must reach answer, at the ports that the cluster uses."""
    answers = had(case.evidence.peers, "peers")
    asked = {name: answer for name, answer in answers.items() if name in case.fleet.evidence}
    if not asked:
        return skipped("no other machine that answers this box was asked")
    silent = [name for name, answer in asked.items() if not answer.reached]
    if silent:
        return failed(
            f"no way to {', '.join(silent)}",
            value="nothing came back",
            expected="an answer",
            remedy="look at routes, VLANs and firewalls between these machines; hostip must be reachable from all",
        )
    filtered = [text for name, answer in asked.items() for text in _filtered(case, name, answer)]
    if filtered:
        return failed(
            "something between the machines keeps packets away",
            value="; ".join(filtered),
            expected="an answer at these ports, be it a refusal",
            remedy="open these ports between the machines (firewalls, security groups); docs/preflight.md lists all",
        )
    return passed("control planes and neighbours answer", ", ".join(asked))


def _filtered(case: Case, name: str, answer: PeerAnswer) -> Iterator[str]:
    """Ports of one peer at which nothing came back although the peer lives."""
    ssh = case.fleet.machines[name].ssh.port
    for port, how in answer.tcp.items():
        if how in ("silent", "rejected") and port != str(ssh):
            yield f"{port}/tcp of {name} is {how}"


def packet_size(case: Case) -> Ruling | None:
    """Packets as large as the MTU arrive at other machines."""
    answers = had(case.evidence.peers, "peers")
    tried = {name: answer for name, answer in answers.items() if answer.small and answer.large is not None}
    if not tried:
        return skipped("no other machine answers datagrams")
    lost = [f"{name} ({answer.size} bytes)" for name, answer in tried.items() if not answer.large]
    if not lost:
        return passed("packets as large as the MTU arrive", ", ".join(tried))
    words = {
        "value": ", ".join(lost),
        "expected": "an answer",
        "remedy": "set the MTU of all machines to what the switches and tunnels between them carry",
    }
    message = "packets as large as the MTU get lost on the way to " + ", ".join(name for name in tried if not
                                                                                tried[name].large)  # fmt: skip
    return failed(message, **words) if len(lost) == len(tried) else warned(message, **words)


def firewall(case: Case) -> Ruling | None:
    """No firewall on the machine, or one that lets the cluster through."""
    seen = had(case.evidence.firewall, "firewall")
    active = [name for name, on in (("ufw", seen.ufw), ("firewalld", seen.firewalld)) if on]
    active += [f"a chain that drops by default: {name}" for name in seen.chains or () if not active]
    if not active and seen.chains is None:
        return unknown("only root may see the kernel's filters")
    if not active:
        return passed("no firewall of its own")
    ports = ", ".join(str(need) for need in needs.ports(case.site, case.machine) if not need.local)
    pods = case.site.settings.pod_cidr
    return warned(
        f"a firewall is on: {', '.join(active)}",
        value=", ".join(active),
        expected=f"open for {ports}",
        remedy=f"allow these ports from the site's machines, and everything from and to the pods ({pods})",
    )


CHECKS = (
    Check("mtu", "One MTU on all machines", mtu),
    Check("network-overlap", "No route into pod_cidr or service_cidr", overlap),
    Check("peers", "Control planes and neighbours can be reached at the ports that the cluster uses", peers),
    Check("packet-size", "Packets as large as the MTU reach other machines", packet_size),
    Check("firewall", "No firewall, or one that is open for the cluster", firewall),
)
