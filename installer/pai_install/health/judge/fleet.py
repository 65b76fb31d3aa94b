"""Input of checks that compare machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pai_install.checks.limits import Limits
from pai_install.health.judge.expectation import Expectation
from pai_install.kube.model import Node


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """The data of a checked machine for comparison with others.

    traits: "driver" -> "580.105.08" and so on, only observed ones. gpus, mig_devices: None if nvidia-smi failed.
    clock_offset: seconds, None if unknown. bandwidth: of all its GPUs together in GB/s, None if not measured.
    """

    name: str
    expected: Expectation
    nvidia: bool
    traits: Mapping[str, str]
    gpus: int | None
    mig_devices: int
    clock_offset: float | None = None
    bandwidth: float | None = None


@dataclass(frozen=True, slots=True)
class HealthFleet:
    """All machines of a run.

    nodes: from Kubernetes, None if no control-plane node responded. nodes_gap: why a queried one failed.
    """

    machines: tuple[MachineFacts, ...]
    nodes: Mapping[str, Node] | None
    limits: Limits
    nodes_gap: str = ""
