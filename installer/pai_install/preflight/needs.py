"""What the site needs of each machine before it can be installed, and what is asked of it therefore; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pai_install.site import Machine, Site

SUPPORTED_SYSTEMS: Mapping[str, tuple[str, ...]] = {"debian": ("12", "13"), "ubuntu": ("22.04", "24.04")}
API_PORT = 6443
PROXY_PORT = 7443
VXLAN_PORT = 8472
NEIGHBOURS = 2
GIB = 1 << 30

# path -> the space that an installation cannot do without, and what is enough for work; in GiB
_SPACE: Mapping[str, tuple[int, int]] = {
    "/": (1, 5),
    "/var/lib/containerd": (5, 40),
    "/var/lib/kubelet": (1, 20),
    "/var/lib/etcd": (2, 10),
    "/var/lib/pai-install": (2, 10),
    "/usr/local/bin": (1, 2),
}
_DOCKER_SPACE = (2, 20)
_TIME_PROGRAMS = ("chronyd", "ntpd", "ntpsec", "openntpd")


@dataclass(frozen=True, slots=True)
class PortNeed:
    """A port of ours. programs: who holds it once installed (empty: the kernel); tolerated: who may hold it before.

    local: only the machine itself connects to it.
    """

    port: int
    purpose: str
    programs: tuple[str, ...] = ()
    protocol: str = "tcp"
    tolerated: tuple[str, ...] = ()
    local: bool = False

    def __str__(self) -> str:
        return f"{self.port}/{self.protocol}"


def ports(site: Site, machine: Machine) -> tuple[PortNeed, ...]:
    """Every port that must be free on a machine, or be held by what we put there."""
    found = [
        PortNeed(10250, "kubelet", ("kubelet",)),
        PortNeed(10248, "kubelet", ("kubelet",), local=True),
        PortNeed(10249, "kube-proxy", ("kube-proxy",), local=True),
        PortNeed(10256, "kube-proxy", ("kube-proxy",), local=True),
        PortNeed(PROXY_PORT, "the way to the API", ("haproxy",), local=True),
    ]
    if site.settings.flannel_backend == "vxlan":
        found.append(PortNeed(VXLAN_PORT, "pod network", protocol="udp"))
    if machine.control_plane:
        found += [
            PortNeed(API_PORT, "Kubernetes API", ("kube-apiserver",)),
            PortNeed(2379, "etcd", ("etcd",)),
            PortNeed(2380, "etcd", ("etcd",)),
            PortNeed(2381, "etcd", ("etcd",), local=True),
            PortNeed(10257, "kube-controller-manager", ("kube-controller-manager",), local=True),
            PortNeed(10259, "kube-scheduler", ("kube-scheduler",), local=True),
            PortNeed(123, "time", ("chronyd",), "udp", _TIME_PROGRAMS),
        ]
    if is_store(site, machine):
        found.append(PortNeed(site.settings.component_store_port, "component store", ("pai-registry",)))
    return tuple(found)


def is_store(site: Site, machine: Machine) -> bool:
    """Whether the machine serves the components: the first control plane does."""
    return machine.hostname == first_control_plane(site).hostname


def first_control_plane(site: Site) -> Machine:
    """The control plane that the others join."""
    return next(machine for machine in site.machines if machine.control_plane and not machine.absent)


def kernel_modules(site: Site) -> tuple[str, ...]:
    """Modules that the pod network and containers need."""
    tunnel = ("vxlan",) if site.settings.flannel_backend == "vxlan" else ()
    return ("overlay", "br_netfilter", "nf_conntrack", "nf_tables", *tunnel)


def space(site: Site, machine: Machine) -> dict[str, tuple[int, int]]:
    """Path -> bytes that must be free there before an installation, and bytes that should be."""
    wanted = {**_SPACE, str(site.settings.docker_data_root): _DOCKER_SPACE}
    if not machine.control_plane:
        del wanted["/var/lib/etcd"]
    if not is_store(site, machine):
        del wanted["/var/lib/pai-install"]
    return {path: (least * GIB, enough * GIB) for path, (least, enough) in wanted.items()}


def peers(site: Site) -> dict[str, dict[str, tuple[int, ...]]]:
    """Machine -> the machines that it must reach -> TCP ports there: the control planes and a few neighbours.

    The neighbours are the next ones in machine-list, so that every machine is somebody's neighbour and the
    number of connections grows with the number of machines only.
    """
    present, masters = site.present_machines, site.control_planes
    found = {}
    for index, machine in enumerate(present):
        ring = [present[(index + step) % len(present)] for step in range(1, NEIGHBOURS + 1)]
        others = {other.hostname: other for other in (*masters, *ring) if other is not machine}
        found[machine.hostname] = {name: peer_ports(site, machine, other) for name, other in others.items()}
    return found


def peer_ports(site: Site, machine: Machine, other: Machine) -> tuple[int, ...]:
    """Ports of `other` that the cluster needs from `machine`; its SSH port first, which only shows that it lives."""
    found = [other.ssh.port]
    if other.control_plane:
        found.append(API_PORT)
        if machine.control_plane:
            found += [2379, 2380]
        if is_store(site, other):
            found.append(site.settings.component_store_port)
    if machine.control_plane:
        found.append(10250)
    return tuple(found)


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
    asked = peers(site)
    return {
        machine.hostname: {
            **_own_questions(site, machine),
            "preflight_peers": [
                {"name": name, "address": addresses[name], "tcp": list(wanted)}
                for name, wanted in asked[machine.hostname].items()
            ],
        }
        for machine in site.present_machines
    }


def _own_questions(site: Site, machine: Machine) -> dict[str, Any]:
    resolver = site.settings.kubelet_config.get("resolvConf")
    return {
        "preflight_become": machine.become,
        "preflight_paths": list(space(site, machine)),
        "preflight_modules": list(kernel_modules(site)),
        "preflight_etcd": "/var/lib/etcd" if machine.control_plane else "",
        "preflight_resolv_conf": resolver if isinstance(resolver, str) else "",
        "preflight_servers": list(proxy_servers(site)),
    }
