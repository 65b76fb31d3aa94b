"""Firewall exceptions for pod packets on every machine. Only machines may use the tunnel and storage servers."""

from __future__ import annotations

from collections.abc import Hashable

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables, everywhere
from pai_install.ports import NFS_PORT, VXLAN_PORT
from pai_install.site import Machine, Site


class PodForwardingVariables(RoleVariables):
    """cidr: addresses of all pods. tunnel_port: of the pod network, 0 where it has no tunnel.

    storage_servers: addresses that no pod asks at storage_port.
    """

    role = "pod_forwarding"
    cidr: str
    tunnel_port: int
    storage_servers: tuple[str, ...]
    storage_port: int


class PodForwarding(Part):
    """Every machine."""

    name = "pod_forwarding"
    phase = "runtime"
    model = PodForwardingVariables

    def variables(self, context: Context, machine: Machine) -> PodForwardingVariables:
        """Only VXLAN has a port."""
        del machine
        settings = context.site.settings
        port = VXLAN_PORT if settings.flannel_backend == "vxlan" else 0
        return PodForwardingVariables(
            cidr=str(settings.pod_cidr),
            tunnel_port=port,
            storage_servers=tuple(sorted(server.hostip for server in context.site.storage_servers)),
            storage_port=NFS_PORT,
        )

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """The same everywhere."""
        return everywhere(site, machine)
