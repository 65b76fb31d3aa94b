"""Inspects the registries from the machines: tests, and the cache's own reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from pai_install.errors import ExitCode, PaiError
from pai_install.operations.operation import Operation
from pai_install.plan.model import HostStep, Plan, Playbook, Step
from pai_install.plan.observation import Observation
from pai_install.registry.compile import registries_of
from pai_install.registry.model import STORE_HOST, Cache
from pai_install.site.model import Machine, Site
from pai_install.site.selection import require_present
from pai_install.system.parameters import Parameter

ASKED = "asked for"
HIDDEN = Parameter(hidden=True)
_IMAGE = re.compile(r"[a-z0-9]([a-zA-Z0-9._:/-]|@sha256:[0-9a-f]{64}$){0,254}")


def _image(text: str) -> str:
    """Checks the name of an image. Raises ValueError."""
    if not _IMAGE.fullmatch(text):
        raise ValueError(f"{text!r} is no image: write NAME:TAG, UPSTREAM/NAME:TAG or NAME@sha256:DIGEST")
    return text


Image = Annotated[str, AfterValidator(_image)]


class RegistryLook(Operation):
    """An operation that asks registries from machines and changes nothing that lasts."""

    def require(self, site: Site) -> None:
        """The site must have a cache or mirrors."""
        if not upstreams(site):
            raise PaiError(
                "cannot inspect registries: this site has neither a cache nor mirrors",
                code="registry-not-configured",
                remedy="set enable_docker_cache: true in config.yaml to start a cache (docs/registries.md)",
                exit_code=ExitCode.USAGE,
            )

    def step(self, machines: tuple[Machine, ...], variables: Mapping[str, Any], observation: Observation) -> Plan:
        """A plan of the one step that runs the operation's own playbook on machines."""
        name = self.name.replace(" ", "-")
        hosts = tuple(HostStep(machine.hostname, (ASKED,)) for machine in machines)
        action = Playbook(f"{name}.yml", variables)
        return Plan((Step(name, self.summary.rstrip("."), hosts, action, looks=True),), observation.inventory)


class RegistryTest(RegistryLook):
    """Every machine asks its endpoints, and pulls images if any are named."""

    name: ClassVar[str] = "registry test"
    summary: ClassVar[str] = "Test the registries from every machine with the settings of containerd."
    images: Annotated[tuple[Image, ...], Parameter(flag="--image", metavar="IMAGE")] = Field(
        (), description="An image that every machine pulls and removes. Repeatable."
    )
    limit: Annotated[tuple[str, ...], Parameter(metavar="HOST,...", split=True)] = Field(
        (), description="Run only on these machines of the site."
    )
    cached: Annotated[bool, HIDDEN] = Field(
        default=False, description="Only registries that the cluster's own cache serves."
    )
    upstream: Annotated[str, HIDDEN] = Field("", description="Only this registry; empty: all.")
    store: Annotated[bool, HIDDEN] = Field(default=False, description="Also the component store.")

    def require(self, site: Site) -> None:
        """The machines must be present ones of the site."""
        if not self.store:
            super().require(site)
        require_present(site, self.limit)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One step on the machines."""
        machines = tuple(one for one in site.nodes if not self.limit or one.hostname in self.limit)
        requested = [name for name in upstreams(site, cached=self.cached) if self.upstream in ("", name)]
        names = [*([STORE_HOST] if self.store else []), *requested]
        variables = {"registry_upstreams": names, "registry_images": list(self.images)}
        return self.step(machines, variables, observation)


class RegistryWarm(RegistryLook):
    """Images come into the cache before a class of jobs starts."""

    name: ClassVar[str] = "registry warm"
    summary: ClassVar[str] = "Load images into the registry cache."
    images: Annotated[tuple[Image, ...], Parameter(positional=True, metavar="IMAGE...")] = Field(
        min_length=1, description="Images to bring into the cache."
    )

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One step on the first control plane, where the cache is."""
        return self.step(_leader(site), {"registry_images": list(self.images)}, observation)


class RegistryStatus(RegistryLook):
    """How the cache is used."""

    name: ClassVar[str] = "registry status"
    summary: ClassVar[str] = "Show hits, misses, traffic, size, and limit of the registry cache."

    def require(self, site: Site) -> None:
        """The site must have a cache of its own."""
        super().require(site)
        _own_cache(site)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One step on the first control plane, where the cache is."""
        cache = _own_cache(site)
        folder = "" if cache.azure else cache.folder
        names = [upstream.name for upstream in cache.upstreams]
        return self.step(_leader(site), {"registry_upstreams": names, "registry_folder": folder}, observation)


class RegistryGc(RegistryLook):
    """Deletes unused content now instead of at the scheduled time. The cache can pull it again."""

    name: ClassVar[str] = "registry gc"
    summary: ClassVar[str] = "Delete unused and excess content of the registry cache."
    only_count: Annotated[bool, Parameter(flag="--check")] = Field(
        default=False, description="Only list the content to remove."
    )

    def require(self, site: Site) -> None:
        """The site must have a cache of its own that keeps its content in a folder."""
        super().require(site)
        if _own_cache(site).azure:
            raise PaiError(
                "cannot prune the cache: Azure does not record when content was used",
                code="registry-azure-without-usage",
                remedy="set keep-days in the section registry",
                exit_code=ExitCode.USAGE,
            )

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One step on the first control plane, where the cache is."""
        return self.step(_leader(site), {"registry_only_count": self.only_count}, observation)


def _own_cache(site: Site) -> Cache:
    """Raises PaiError where the site has none."""
    cache = registries_of(site).cache
    if cache is None:
        raise PaiError(
            "cannot inspect the registry cache: this site has only mirrors",
            code="registry-cache-missing-mirrors-only",
            remedy="run pai-install registry test, which asks the mirrors",
            exit_code=ExitCode.USAGE,
        )
    return cache


def upstreams(site: Site, *, cached: bool = False) -> tuple[str, ...]:
    """Returns the registries that machines use through a cache or a mirror. cached: only the cluster's own cache."""
    found = registries_of(site)
    served = {upstream.name for upstream in found.cache.upstreams} if found.cache else set()
    return tuple(one.name for one in found.upstreams if one.name in served or (one.mirror and not cached))


def _leader(site: Site) -> tuple[Machine, ...]:
    return site.control_planes[:1]
