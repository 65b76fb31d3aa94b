"""Every check, as tables of pure functions: evidence in, judgement out."""

from __future__ import annotations

from pai_install.health.judge.check import FleetCheck, GpuCheck, MachineCheck
from pai_install.health.judge.rules import (
    bandwidth,
    containers,
    disk,
    driver,
    fabric,
    host,
    inventory,
    kubernetes,
    link,
    memory,
    network,
    peers,
    state,
    thermal,
    xids,
)
from pai_install.health.model import CheckText

_LOCAL: tuple[GpuCheck | MachineCheck, ...] = (
    *state.CHECKS,
    *inventory.CHECKS,
    *driver.CHECKS,
    *xids.CHECKS,
    *memory.CHECKS,
    *fabric.CHECKS,
    *link.CHECKS,
    *thermal.CHECKS,
    *network.CHECKS,
    *containers.CHECKS,
    *bandwidth.CHECKS,
    *host.CHECKS,
    *disk.CHECKS,
)
GPU_CHECKS: tuple[GpuCheck, ...] = tuple(check for check in _LOCAL if isinstance(check, GpuCheck))
MACHINE_CHECKS: tuple[MachineCheck, ...] = tuple(check for check in _LOCAL if isinstance(check, MachineCheck))
FLEET_CHECKS: tuple[FleetCheck, ...] = (*kubernetes.CHECKS, *peers.CHECKS)
TEXTS: dict[str, CheckText] = {check.text.id: check.text for check in (*_LOCAL, *FLEET_CHECKS)}
