"""The checks of machines, by subject; pure. A new check is a new function in one of these files."""

from __future__ import annotations

from pai_install.checks.check import Check, declared
from pai_install.preflight.model import MachineJudge
from pai_install.preflight.rules import (
    clock,
    containers,
    disks,
    hardware,
    identity,
    kernel,
    leftovers,
    login,
    names,
    network,
    ports,
)

CHECKS: tuple[Check[MachineJudge], ...] = declared(
    login, identity, hardware, kernel, disks, clock, containers, leftovers, ports, network, names
)
