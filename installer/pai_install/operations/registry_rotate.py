"""Bring one stage of a rotation to the machines."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from pai_install.errors import ExitCode, PaiError
from pai_install.operations.operation import Operation
from pai_install.plan.model import Plan
from pai_install.plan.observation import Observation
from pai_install.plan.planner import make_plan
from pai_install.registry.compile import registries_of
from pai_install.registry.rotation import SERVERS, Subject
from pai_install.registry.rotation import phases as phases_of
from pai_install.site.model import Site
from pai_install.site.selection import watched


class RegistryRotate(Operation):
    """Runs only the phases of a stage, on machines that differ from the site and the identity."""

    name: ClassVar[str] = "registry rotate"
    summary: ClassVar[str] = "Apply one stage of a credential rotation to servers and machines."
    configures: ClassVar[bool] = True
    subject: Subject | Literal["upstream"] = Field(description="What is rotated.")
    phases: tuple[str, ...] = Field((), description="The phases of the stage; empty: those of all stages.")

    def require(self, site: Site) -> None:
        """Every site has an authority, an upstream may have a mirror, a login exists where a cache asks for one."""
        if self.subject in ("ca", "upstream"):
            return
        cache = registries_of(site).cache
        if cache is None:
            remedy = "set enable_docker_cache: true in config.yaml"
            raise PaiError(
                "cannot rotate the registry cache: this site has none",
                code="registry-cache-missing",
                remedy=remedy,
                exit_code=ExitCode.USAGE,
            )
        if self.subject == "credentials" and not cache.authenticated:
            remedy = "set docker_cache_htpasswd in config.yaml"
            raise PaiError(
                "cannot rotate the login of the cache: it has none",
                code="registry-cache-without-login",
                remedy=remedy,
                exit_code=ExitCode.USAGE,
            )

    def watched(self, site: Site) -> tuple[str, ...]:
        """All present machines."""
        return watched(site, ())

    def plan(self, site: Site, observation: Observation) -> Plan:
        """Returns the work of the phases, and no other steps."""
        plan = make_plan(site, observation.inventory, observation.machines, unreachable=observation.unreachable)
        phases = self.phases or (() if self.subject == "upstream" else phases_of(self.subject))
        steps = tuple(step for step in plan.steps if step.name in phases)
        return replace(plan, steps=steps, nothing="every machine that answered has this stage already")


def unsettled(plan: Plan, subject: Subject) -> bool:
    """Returns whether responding machines differ from the site and the identity, in the rotated object."""
    phases = phases_of(subject) | {"addons", "registries"}
    return any(step.name in phases for step in plan.steps)


def behind(plan: Plan, subject: Subject) -> tuple[str, ...]:
    """Returns the machines that differ from the identity or did not respond."""
    clients = phases_of(subject) - SERVERS | {"registries"}
    waiting = [name for step in plan.steps if step.name in clients for name in step.names]
    return tuple(sorted({*waiting, *plan.unreachable}))
