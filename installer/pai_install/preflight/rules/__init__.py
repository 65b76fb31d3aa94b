"""The checks, by subject; pure."""

from __future__ import annotations

from pai_install.preflight.model import Check
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

CHECKS: tuple[Check, ...] = (
    *login.CHECKS,
    *identity.CHECKS,
    *hardware.CHECKS,
    *kernel.CHECKS,
    *disks.CHECKS,
    *clock.CHECKS,
    *containers.CHECKS,
    *leftovers.CHECKS,
    *ports.CHECKS,
    *network.CHECKS,
    *names.CHECKS,
)
