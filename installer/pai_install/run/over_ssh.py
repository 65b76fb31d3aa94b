"""kubectl for steps: on the first control plane that answers, over the engine's connections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pai_install.engine.base import Engine
from pai_install.health.nodes import KubectlCall, kubectl
from pai_install.plan.model import Inventory


@dataclass(frozen=True, slots=True)
class ClusterOverSsh:
    """A `Cluster` that needs no way to the API but SSH."""

    engine: Engine
    inventory: Inventory

    def kubectl(self, words: Sequence[str]) -> str:
        """Runs one command and gives its output. Raises PaiError when it fails or no control plane answers."""
        return kubectl(self.engine, self.inventory, [KubectlCall(tuple(words))])[0]
