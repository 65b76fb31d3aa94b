"""Keeps the pods of different groups apart: a service on all nodes, and an add-on with its rights in the cluster."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables
from pai_install.site import Machine, Site
from pai_install.site.groups import groups_of


class GroupNetworkVariables(RoleVariables):
    """cidr: of all pods. ports: protocol -> ports of machines that pods of groups cannot reach.

    publishes: whether the machine publishes the addresses of pods.
    """

    role = "group_network"
    cidr: str
    ports: dict[str, tuple[int, ...]]
    namespaces: tuple[str, ...]
    publishes: bool
    server: str


class GroupNetwork(Part):
    """Every node of a site with groups."""

    name = "group_network"
    phase = "labels"
    model = GroupNetworkVariables
    after = ("api_proxy", "control_plane", "worker", "addon.group_network")
    removable = True

    def variables(self, context: Context, machine: Machine) -> GroupNetworkVariables | None:
        """Returns None without groups, or if the site lets them reach each other."""
        site = context.site
        if not has_group_network(site):
            return None
        return GroupNetworkVariables(
            cidr=str(site.settings.pod_cidr),
            ports=dict(context.machine_ports),
            namespaces=tuple(sorted({group.namespace for group in groups_of(site.services)})),
            publishes=machine.control_plane,
            server=f"https://{context.endpoint}",
        )

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """Control planes publish, too."""
        del site
        return machine.control_plane


def has_group_network(site: Site) -> bool:
    """Returns whether the site has groups that cannot reach each other."""
    return site.settings.group_isolation and bool(groups_of(site.services))


def group_network_values(context: Context) -> dict[str, Any]:
    """For the add-on's template, which is the same at all sites."""
    del context
    return {}
