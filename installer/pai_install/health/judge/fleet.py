"""What checks that compare machines see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pai_install.checks.limits import Limits
from pai_install.health.judge.expectation import Expectation
from pai_install.kube.model import Node


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What is kept of a machine after its own checks, to compare it with others.

    traits: "driver" -> "580.105.08" and so on; a trait that was not observed is left out. gpus, mig_devices: None
    when nvidia-smi did not answer. clock_offset: seconds, None when not known. bandwidth: of all its GPUs together in
    GB/s, None when it was not measured.
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

    nodes: what Kubernetes says, None when no control plane answered. nodes_gap: why one that was asked did not.
    """

    machines: tuple[MachineFacts, ...]
    nodes: Mapping[str, Node] | None
    limits: Limits
    nodes_gap: str = ""
