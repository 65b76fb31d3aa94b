"""Requirements per machine (ports, space, modules) and the probe parameters derived from them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pai_install.parts import registry
from pai_install.parts.part import is_leader
from pai_install.parts.storage_client import export_checks
from pai_install.site import Machine, Site

SUPPORTED_SYSTEMS: Mapping[str, tuple[str, ...]] = {"debian": ("12", "13"), "ubuntu": ("22.04", "24.04")}
NEIGHBOURS = 2
GIB = 1 << 30


def space(site: Site, machine: Machine) -> dict[str, tuple[int, int]]:
    """Path -> bytes that must be free there before an installation, and bytes that should be."""
    wanted = registry.space(site, machine)
    return {path: (space.least * GIB, space.enough * GIB) for path, space in wanted.items()}


def peers(site: Site) -> dict[str, dict[str, tuple[int, ...]]]:
    """Machine -> the machines that it must reach -> TCP ports there: control planes, storage servers, a few neighbours.

    The neighbours are the next ones in machine-list, so that every machine is a neighbour of another and the
    number of connections grows with the number of machines only.
    """
    present, masters = site.present_machines, site.control_planes
    found = {}
    for index, machine in enumerate(present):
        ring = [present[(index + step) % len(present)] for step in range(1, NEIGHBOURS + 1)]
        served = (*masters, *site.storage_servers)
        others = {other.hostname: other for other in (*served, *ring) if other is not machine}
        found[machine.hostname] = {name: peer_ports(site, machine, other) for name, other in others.items()}
    return found


def peer_ports(site: Site, machine: Machine, other: Machine) -> tuple[int, ...]:
    """Returns ports of `other` that the cluster uses from `machine`. The first is its SSH port, which only shows that
    it is up.
    """
    if not machine.node:
        return (other.ssh.port, *((site.settings.component_store_port,) if _downloads_from(site, other) else ()))
    clients = {"machines", "control planes"} if machine.control_plane else {"machines"}
    served = registry.ports(site, other)
    return (other.ssh.port, *(port.port for port in served if port.protocol == "tcp" and port.clients in clients))


def _downloads_from(site: Site, other: Machine) -> bool:
    """Whether a machine that is no node gets a program from it: the exporter of its metrics."""
    return site.services.monitoring is not None and is_leader(site, other)


def proxy_servers(site: Site) -> tuple[str, ...]:
    """HOST:PORT of the site's proxies: machines must reach them."""
    found = []
    for url in (site.settings.http_proxy, site.settings.https_proxy):
        if url:
            scheme, _, rest = url.rpartition("://")
            server = rest.partition("/")[0].rpartition("@")[2]
            found.append(server if ":" in server else f"{server}:{443 if scheme == 'https' else 80}")
    return tuple(dict.fromkeys(found))


def questions(site: Site) -> dict[str, dict[str, Any]]:
    """Machine -> the variables of preflight.yml for it."""
    addresses = {machine.hostname: machine.hostip for machine in site.machines}
    needed = peers(site)
    return {
        machine.hostname: {
            **_own_questions(site, machine),
            "preflight_peers": [
                {"name": name, "address": addresses[name], "tcp": list(wanted)}
                for name, wanted in needed[machine.hostname].items()
            ],
        }
        for machine in site.present_machines
    }


def _own_questions(site: Site, machine: Machine) -> dict[str, Any]:
    resolver = site.settings.kubelet_config.get("resolvConf")
    return {
        "preflight_become": machine.become,
        "preflight_paths": list(space(site, machine)),
        "preflight_modules": list(registry.kernel_modules(site)) if machine.node else [],
        "preflight_etcd": "/var/lib/etcd" if machine.control_plane else "",
        "preflight_resolv_conf": resolver if isinstance(resolver, str) else "",
        "preflight_servers": list(proxy_servers(site)),
        "preflight_exports": [
            {"server": one.server, "path": one.path, "port": one.port} for one in export_checks(site) if machine.worker
        ],
    }
