"""A machine that serves storage to the nodes, over NFS."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from ipaddress import IPv4Address
from typing import Annotated

from pai_install.documents.quantity import parse_bytes
from pai_install.parts.context import Context
from pai_install.parts.part import Part, Port, RoleVariables, Space, everywhere, restarts
from pai_install.ports import NFS_PORT
from pai_install.site import Machine, Site


class StorageServerVariables(RoleVariables):
    """path: parent of the exported folders. clients: addresses that may mount, which the server reads without restart.

    data_quota, user_quota: bytes, of data and of each folder in users. 0: unlimited.
    """

    role = "storage_server"
    path: Annotated[str, restarts()]
    clients: Annotated[tuple[str, ...], restarts()]
    data_quota: Annotated[int, restarts()]
    user_quota: Annotated[int, restarts()]


class StorageServer(Part):
    """Machines with pai-storage, nodes or not."""

    name = "storage_server"
    phase = "storage"
    model = StorageServerVariables
    after = ("base",)
    restarts = ("nfs-server.service", "nfs-ganesha.service")
    stops = restarts
    # a node that joins with --limit mounts nothing before the server knows it
    given_to_others = frozenset({"storage_server_clients"})

    def applies(self, site: Site, machine: Machine) -> bool:
        """Where the layout says so."""
        del site
        return machine.storage

    def variables(self, context: Context, machine: Machine) -> StorageServerVariables:
        """The kubelet mounts from its machine's address: no one else is let in."""
        del machine
        clients = sorted({node.hostip for node in context.site.nodes}, key=IPv4Address)
        server = context.site.services.file_server
        return StorageServerVariables(
            path=server.localpath,
            clients=tuple(clients),
            data_quota=_bytes(server.quotas.data),
            user_quota=_bytes(server.quotas.user),
        )

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """The same everywhere."""
        return everywhere(site, machine)

    def ports(self, site: Site, machine: Machine) -> tuple[Port, ...]:
        """Returns the port of NFS version 4. The kernel's server is no program."""
        del site, machine
        return (Port(NFS_PORT, "NFS", ("ganesha.nfsd",), clients="machines"),)

    def space(self, site: Site, machine: Machine) -> Mapping[str, Space]:
        """What jobs keep."""
        del machine
        return {site.services.file_server.localpath: Space(1, 100)}


def _bytes(quota: str | None) -> int:
    return parse_bytes(quota) if quota else 0
