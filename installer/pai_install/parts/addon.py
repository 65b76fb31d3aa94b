"""An add-on is a part that is Kubernetes objects only: a folder of data below addons/, read from its addon.yml.

How the folder is laid out: docs/contributing/add-on.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pai_install.json_schema import DIALECT
from pai_install.parts.compiled import COMPILED, Compiled
from pai_install.parts.context import Context
from pai_install.parts.part import Clients, Part, Port, RoleVariables, is_leader
from pai_install.site import Machine, Site
from pai_install.system.yaml import load_yaml

RECORD_PREFIX = "addon."


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class When(_Data):
    """A condition of the site. All given keys must hold, and a condition without keys always holds."""

    setting: str = ""
    """A key of config.yaml that must have a value, or the value `equals`."""
    equals: bool | int | str | None = None
    """The value of `setting`. [default: any but false and an empty one]"""
    device: str = ""
    """The beginning of a device type. A present machine must have such a device."""
    section: str = ""
    """A section of services-configuration.yaml that the site must have."""
    storage: str = ""
    """A storage type. The site must have such a storage and let pai-install install its CSI driver."""

    def _is_set(self, site: Site) -> bool:
        if not self.setting:
            return True
        value = getattr(site.settings, self.setting)
        return bool(value) if self.equals is None else bool(value == self.equals)

    def holds(self, site: Site) -> bool:
        """Whether it does on this site."""
        return (
            self._is_set(site)
            and (not self.device or _has_device(site, self.device))
            and (not self.section or site.has_section(self.section))
            and (not self.storage or self.storage in site.driven_storages)
        )


class AddonPort(_Data):
    """A host port of its pods."""

    port: int
    purpose: str
    protocol: Literal["tcp", "udp"] = "tcp"
    programs: tuple[str, ...] = ()
    """Programs that hold the port. Empty for the kernel."""
    clients: Clients = "machines"
    """Who connects to the port."""
    when: When = When()


class AddonModule(_Data):
    """A kernel module that its pods need."""

    name: str
    when: When = When()


class Definition(_Data):
    """The content of addon.yml."""

    summary: str
    """One line for people."""
    phase: Literal["network", "addons"] = "addons"
    """`network`: applied before the workers join, such as pods that start slowly. `addons`: applied after it."""
    when: When = When()
    """The condition under which the site gets the add-on."""
    compiled: str = ""
    """A name of `parts/compiled.py`. Its function returns values that no other key can express, such as lists,
    addresses, and digests. `objects` among them are complete objects and need no template. A secret is below a key
    `secret_data`, which is masked in all output."""
    machines: Literal["all", "control planes", "leader", "workers"] = "all"
    """Machines that may run its pods. Only they hold its images. `leader` is the first control plane."""
    components: tuple[str, ...] = ()
    """Components of the catalogue that its images and manifests belong to."""
    images: Mapping[str, str] = Field(default_factory=dict)
    """Template variable -> image of the catalogue, as NAME:TAG@DIGEST. Machines hold it before a pod needs it."""
    manifests: tuple[str, ...] = ()
    """Upstream manifests of the catalogue, which `patches/` changes."""
    settings: Mapping[str, str] = Field(default_factory=dict)
    """Template variable -> key of config.yaml."""
    flags: Mapping[str, When] = Field(default_factory=dict)
    """Template variable -> condition."""
    namespaces: tuple[str, ...] = ()
    """Namespaces of its pods. `status` watches them."""
    ports: tuple[AddonPort, ...] = ()
    """Host ports of its pods."""
    kernel_modules: tuple[AddonModule, ...] = ()
    """Kernel modules that its pods need."""
    waits: tuple[str, ...] = ()
    """Rollouts to wait for, as NAMESPACE KIND/NAME."""
    after: tuple[str, ...] = ()
    """Add-ons that are applied before."""
    needs: tuple[str, ...] = ()
    """Parts that must succeed before."""
    replaces: tuple[str, ...] = ()
    """Records of earlier versions that the add-on takes over."""
    not_beside: tuple[str, ...] = ()
    """Add-ons that never run beside it. If one of them is no longer wanted, it is removed first."""


def schema() -> dict[str, Any]:
    """The JSON Schema of addon.yml."""
    return {"$schema": DIALECT, **Definition.model_json_schema(), "title": "addon.yml"}


class Manifest(_Data):
    """An upstream manifest on the controller host."""

    name: str
    path: str
    sha256: str


class Addon(_Data):
    """One add-on as an argument of the role. values: of its templates."""

    name: str
    phase: str
    values: dict[str, Any]
    manifests: tuple[Manifest, ...]
    waits: tuple[str, ...]
    replaces: tuple[str, ...]
    not_beside: tuple[str, ...] = ()


class AddonVariables(RoleVariables):
    """The desired add-ons of the cluster. Each part provides its own, and the inventory merges them."""

    role = "cluster_addons"
    wanted: tuple[Addon, ...]

    def settings(self) -> dict[str, Any]:
        """The values of the one add-on, and the sums of its manifests."""
        # Each add-on has a record of its own on the machine, so these settings are those of one.
        (addon,) = self.wanted
        # A changed upstream manifest must run the role again, although no value is different.
        sums = {f"manifest {manifest.name}": manifest.sha256 for manifest in addon.manifests}
        return {**addon.model_dump(mode="json")["values"], **sums, "waits": list(addon.waits)}


class AddonPart(Part):
    """The add-on of one folder, applied through the first control plane."""

    model = AddonVariables
    removable = True

    def __init__(self, folder: Path) -> None:
        """Raises pydantic's ValidationError, or KeyError, when addon.yml is not one (a bug: it is ours)."""
        self.addon = folder.name
        self.definition = Definition.model_validate(load_yaml((folder / "addon.yml").read_text(encoding="utf-8")))
        self.compiled: Compiled | None = COMPILED[self.definition.compiled] if self.definition.compiled else None
        self.name = f"{RECORD_PREFIX}{self.addon}"
        self.phase = self.definition.phase
        others = (f"{RECORD_PREFIX}{name}" for name in self.definition.after)
        self.after = ("control_plane", *self.definition.needs, *others)
        self.namespaces = self.definition.namespaces

    def wanted(self, site: Site) -> bool:
        """Whether the site is to have it."""
        return self.definition.when.holds(site) and (self.compiled is None or self.compiled.wanted(site))

    def applies(self, site: Site, machine: Machine) -> bool:
        """The first control plane, also where the add-on is to be taken away."""
        return is_leader(site, machine)

    def listens(self, site: Site, machine: Machine) -> bool:
        """Where its pods may run."""
        match self.definition.machines:
            case "control planes":
                return machine.control_plane
            case "leader":
                return is_leader(site, machine)
            case "workers":
                return machine.worker
            case _:
                return machine.node

    def variables(self, context: Context, machine: Machine) -> AddonVariables | None:
        """The one add-on."""
        del machine
        if not self.wanted(context.site):
            return None
        manifests = tuple(context.components.manifest(name) for name in self.definition.manifests)
        addon = Addon(
            name=self.addon,
            phase=self.phase,
            values=self._values(context),
            manifests=tuple(Manifest(name=it.name, path=str(it.path), sha256=it.sha256) for it in manifests),
            waits=self.definition.waits,
            replaces=self.definition.replaces,
            not_beside=self.definition.not_beside,
        )
        return AddonVariables(wanted=(addon,))

    def _values(self, context: Context) -> dict[str, Any]:
        settings = context.site.settings
        return {
            **{name: context.image(repository) for name, repository in self.definition.images.items()},
            **{name: getattr(settings, key) for name, key in self.definition.settings.items()},
            **{name: condition.holds(context.site) for name, condition in self.definition.flags.items()},
            **(self.compiled.values(context) if self.compiled else {}),
        }

    def components(self, site: Site) -> frozenset[str]:
        """Returns the components of its images and manifests."""
        return frozenset(self.definition.components) if self.wanted(site) else frozenset()

    def images(self, site: Site, machine: Machine) -> tuple[str, ...]:
        """Returns all images on machines that may run its pods. For a device add-on, these are machines
        with its devices.
        """
        there = self.listens(site, machine) and _is_device(site, machine, self.definition.when.device)
        wanted = there and self.wanted(site)
        return tuple(self.definition.images.values()) if wanted else ()

    def ports(self, site: Site, machine: Machine) -> tuple[Port, ...]:
        """Those of its pods in the machines' own network."""
        del machine
        if not self.wanted(site):
            return ()
        own = (
            Port(port.port, port.purpose, port.programs, port.protocol, (), port.clients)
            for port in self.definition.ports
            if port.when.holds(site)
        )
        return (*own, *(self.compiled.ports(site) if self.compiled else ()))

    def kernel_modules(self, site: Site) -> tuple[str, ...]:
        """Those of its pods."""
        if not self.wanted(site):
            return ()
        return tuple(module.name for module in self.definition.kernel_modules if module.when.holds(site))


def _has_device(site: Site, prefix: str) -> bool:
    return any(_is_device(site, machine, prefix) for machine in site.present_machines)


def _is_device(site: Site, machine: Machine, prefix: str) -> bool:
    """Returns whether the machine's devices have the type. Every machine has the empty type."""
    return not prefix or site.sku_of(machine).has_resource(prefix)
