"""Every check: pure functions, evidence in, results out, each below its declaration."""

from __future__ import annotations

from typing import Any

from pai_install.checks.check import Check, declared, unique
from pai_install.health.judge.check import FleetCheck, GpuCheck, MachineCheck
from pai_install.health.judge.rules import (
    bandwidth,
    containers,
    disk,
    driver,
    fabric,
    host,
    inventory,
    kernel,
    kubernetes,
    link,
    links_again,
    memory,
    network,
    peers,
    start,
    state,
    sxid,
    thermal,
    xids,
)

_LOCAL = declared(
    state,
    inventory,
    driver,
    start,
    xids,
    links_again,
    sxid,
    kernel,
    memory,
    fabric,
    link,
    thermal,
    network,
    containers,
    bandwidth,
    host,
    disk,
)
GPU_CHECKS: tuple[GpuCheck, ...] = tuple(check for check in _LOCAL if isinstance(check, GpuCheck))
MACHINE_CHECKS: tuple[MachineCheck, ...] = tuple(check for check in _LOCAL if isinstance(check, MachineCheck))
FLEET_CHECKS: tuple[FleetCheck, ...] = tuple(
    check for check in (*declared(kubernetes), *peers.TRAIT_CHECKS, *declared(peers)) if isinstance(check, FleetCheck)
)
CHECKS: dict[str, Check[Any]] = {check.id: check for check in unique((*_LOCAL, *FLEET_CHECKS))}
