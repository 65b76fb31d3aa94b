"""The checks of machines, by subject. Pure. A new check is a new function in one of these files."""

from __future__ import annotations

from pai_install.checks.check import Check, declared
from pai_install.preflight.model import MachineJudge
from pai_install.preflight.rules import (
    clock,
    containers,
    disks,
    driver,
    hardware,
    identity,
    kernel,
    leftovers,
    login,
    names,
    network,
    ports,
    storage,
)
from pai_install.site import Machine

CHECKS: tuple[Check[MachineJudge], ...] = declared(
    login, identity, hardware, driver, kernel, disks, clock, containers, leftovers, ports, network, names, storage
)
# what a machine must have to be a node of the cluster, and one beside it need not
_OF_NODES = frozenset({"node-ports", "network-overlap", *(item.id for item in declared(kernel, containers, leftovers))})


def checks_of(machine: Machine) -> tuple[Check[MachineJudge], ...]:
    """The checks that are asked of a machine."""
    return CHECKS if machine.node else tuple(item for item in CHECKS if item.id not in _OF_NODES)
