"""Copies the content of the registry cache to the place in the site's files."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from pai_install.operations.registry_inspect import RegistryLook
from pai_install.plan.model import Plan
from pai_install.plan.observation import Observation
from pai_install.site.model import Site


class RegistryCopy(RegistryLook):
    """The content of the cache on the first control-plane node. The role's variables contain source and target."""

    name: ClassVar[str] = "registry copy"
    summary: ClassVar[str] = "Copy missing content of the registry cache to its new storage."
    configures: ClassVar[bool] = True  # the places and their keys are the machine's settings
    in_use: bool = Field(default=False, description="Whether the cache uses the new place already.")

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One step on the first control plane, where the cache is."""
        return self.step(site.control_planes[:1], {"registry_in_use": self.in_use}, observation)
