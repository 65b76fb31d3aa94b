"""The leader: the control plane that lets others join and is asked about the cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pai_install.parts.registry import PARTS
from pai_install.plan.model import Inventory
from pai_install.plan.observed import Observed
from pai_install.site import Site

# Role variables that carry its name. They are no settings: a new leader changes no machine.
LEADER_VARIABLES = frozenset(name for part in PARTS for name in part.leader_variables)


def leader_of(site: Site, observed: Mapping[str, Observed]) -> str:
    """Returns the host name of the first responding control-plane node with a cluster, by default the site's first one.

    So nodes join through any available one, and a reinstalled first control-plane node joins the cluster that it once
    created.
    """
    for machine in site.control_planes:
        seen = observed.get(machine.hostname)
        if seen is not None and seen.kubernetes.control_plane and seen.kubernetes.joined:
            return machine.hostname
    return site.control_planes[0].hostname


def with_leader(inventory: Inventory, leader: str) -> Inventory:
    """The inventory with that control plane in every variable that names it."""
    return replace(
        inventory,
        shared_vars=_named(inventory.shared_vars, leader),
        host_vars={host: _named(values, leader) for host, values in inventory.host_vars.items()},
    )


def _named(variables: Mapping[str, Any], leader: str) -> Mapping[str, Any]:
    found = LEADER_VARIABLES & variables.keys()
    return {**variables, **dict.fromkeys(found, leader)} if found else variables
