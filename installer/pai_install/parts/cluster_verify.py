"""The proof at the end: containers through every runtime, nodes, system pods, pods on every machine."""

from __future__ import annotations

from collections.abc import Hashable

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables, by_kind
from pai_install.registry.model import STORE_HOST
from pai_install.site import Machine, Site


class ClusterVerifyVariables(RoleVariables):
    """nodes: node name -> whether jobs may run there. leader: the control plane to ask. namespaces: of system pods."""

    role = "cluster_verify"
    version: str
    nodes: dict[str, bool]
    image: str
    store_image: str
    runtimes: tuple[str, ...]
    namespaces: tuple[str, ...]
    leader: str


class ClusterVerify(Part):
    """Every machine. Its role makes nothing and leaves no record."""

    name = "cluster_verify"
    phase = "verify"
    model = ClusterVerifyVariables
    after = ("control_plane",)

    def variables(self, context: Context, machine: Machine) -> ClusterVerifyVariables:
        """Returns the desired conditions after an installation."""
        site = context.site
        return ClusterVerifyVariables(
            version=context.components.kubernetes_version,
            nodes={other.hostname: other.worker for other in site.nodes},
            image=f"{STORE_HOST}/busybox@{context.digest('busybox')}",
            store_image=f"{context.store_address}/busybox@{context.digest('busybox')}",
            runtimes=("runc", "nvidia") if site.sku_of(machine).has_nvidia else ("runc",),
            namespaces=context.namespaces,
            leader=context.leader.hostname,
        )

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """Nothing of the machine itself matters."""
        return by_kind(site, machine)

    def components(self, site: Site) -> frozenset[str]:
        """The image of the test pods."""
        del site
        return frozenset({"busybox"})

    def images(self, site: Site, machine: Machine) -> tuple[str, ...]:
        """A test pod runs on every machine."""
        del site, machine
        return ("busybox",)
