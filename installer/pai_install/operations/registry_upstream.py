"""One registry of the site: a test before any change, and the restoration of its cache configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from pai_install.errors import ExitCode, PaiError
from pai_install.operations.registry_inspect import RegistryLook, upstreams
from pai_install.plan.model import Plan
from pai_install.plan.observation import Observation
from pai_install.site.model import Site


class RegistryUpstream(RegistryLook):
    """ask: test the site's account: the cache's upstream on its machine, a mirror on every machine.

    keep: test, and save the cache's current content for the upstream. restore: restore it. forget: delete the saved
    content.
    """

    name: ClassVar[str] = "registry upstream"
    summary: ClassVar[str] = "Test a registry with the site's account."
    configures: ClassVar[bool] = True
    upstream: str = Field(description="The registry, as images are named after it.")
    does: Literal["ask", "keep", "restore", "forget"] = Field("ask", description="What is done for it.")

    def require(self, site: Site) -> None:
        """A cache of ours must serve it, or the site must have a mirror of it."""
        names = upstreams(site)
        if self.upstream not in names:
            raise PaiError(
                f"cannot find {self.upstream} in the cache",
                code="registry-upstream-unknown",
                remedy=f"choose one of {', '.join(names)}" if names else "add a cache or mirrors to this site",
                exit_code=ExitCode.USAGE,
            )

    def served(self, site: Site) -> bool:
        """Whether it is the cluster's own cache that asks it."""
        return self.upstream in upstreams(site, cached=True)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One step."""
        served = self.served(site)
        setting = f"registry.upstreams {self.upstream}" + ("" if served else ", mirror")
        variables = {"registry_upstream": self.upstream, "registry_asked": setting, "registry_does": self.does}
        plan = self.step(site.control_planes[:1] if served else site.nodes, variables, observation)
        looks = self.does != "restore"
        return replace(plan, steps=tuple(replace(step, looks=looks) for step in plan.steps))
