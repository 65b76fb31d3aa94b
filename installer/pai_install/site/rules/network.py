"""Rules between the networks: those of pods and services, the machines' addresses, Docker's own."""

from __future__ import annotations

import ipaddress

from pai_install.documents.document import Document
from pai_install.site.rules.raw_machines import Draft, drafts
from pai_install.site.rules.settings import wrong_keys
from pai_install.site.settings import Settings

_DOCKER_BRIDGE = ipaddress.IPv4Network("172.17.0.0/16")


def check_networks(layout: Document, config: Document, settings: Settings) -> None:
    """Adds overlaps between the networks of pods, services and machines, and networks of a wrong size."""
    wrong = wrong_keys(config)
    networks = {
        key: ipaddress.IPv4Network(getattr(settings, key)) for key in ("pod_cidr", "service_cidr") if key not in wrong
    }
    machines = drafts(layout)
    if len(networks) == 2:
        _check_overlap(config, networks["pod_cidr"], networks["service_cidr"])
    if "service_cidr" in networks and networks["service_cidr"].prefixlen < 12:
        message = f"{networks['service_cidr']} is larger than Kubernetes allows"
        config.add(("service_cidr",), "site.network-size", message, "use /12 or smaller")
    if "pod_cidr" in networks and "pod_cidr_node_prefix" not in wrong:
        _check_pod_capacity(config, settings, networks["pod_cidr"], len(machines))
    for machine in machines:
        _check_address(layout, config, machine, networks)


def _check_overlap(config: Document, pods: ipaddress.IPv4Network, services: ipaddress.IPv4Network) -> None:
    if pods.overlaps(services):
        message = f"the pods' network {pods} and the services' network {services} overlap"
        path = "pod_cidr" if "pod_cidr" in config.content else "service_cidr"
        config.add((path,), "site.network-overlap", message, "choose two that do not")


def _check_pod_capacity(config: Document, settings: Settings, pods: ipaddress.IPv4Network, machines: int) -> None:
    bits = settings.pod_cidr_node_prefix - pods.prefixlen
    path = "pod_cidr_node_prefix" if "pod_cidr_node_prefix" in config.content else "pod_cidr"
    if not 0 <= bits <= 16:
        message = f"/{settings.pod_cidr_node_prefix} per machine does not fit into {pods}: 0 to 16 bits lie between"
        config.add((path,), "site.network-size", message, "change pod_cidr or pod_cidr_node_prefix")
    elif 2**bits < machines:
        room = f"{2**bits} at /{settings.pod_cidr_node_prefix} each"
        message = f"{pods} has room for {room}, the layout has {machines} machines"
        config.add((path,), "site.network-size", message, "choose a larger pod_cidr or a longer pod_cidr_node_prefix")


def _check_address(
    layout: Document, config: Document, machine: Draft, networks: dict[str, ipaddress.IPv4Network]
) -> None:
    try:
        address = ipaddress.IPv4Address(machine.text("hostip") or "")
    except ValueError:
        return
    path = (*machine.path, "hostip")
    for key, network in networks.items():
        if address in network:
            origin = "" if key in config.content else " (default)"
            message = f"{address} lies in {key} {network}{origin}"
            layout.add(path, "site.network-overlap", message, f"choose another {key} in config.yaml")
    if address in _DOCKER_BRIDGE:
        message = f"{address} lies in {_DOCKER_BRIDGE}, which Docker takes for its own bridge"
        layout.add(path, "site.docker-bridge", message, 'set "bip" in /etc/docker/daemon.json', severity="warning")
