"""The site as one frozen value: the input of all other packages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field, SecretStr

from pai_install.site.fields import FrozenModel
from pai_install.site.rotations import StorageRotationState
from pai_install.site.services.model import Services
from pai_install.site.services.storages import DRIVERS
from pai_install.site.settings import Settings

NVIDIA = "nvidia.com/gpu"
MachineRole = Literal["control-plane", "worker", "storage"]
MACHINE_ROLES: tuple[MachineRole, ...] = get_args(MachineRole)


class Device(FrozenModel):
    """The accelerators of one machine. type: the resource name, e.g. nvidia.com/gpu."""

    type: str
    model: str
    count: int


class Sku(FrozenModel):
    """A hardware type. mem_bytes and vcore: of one machine.

    resources: extended resource, such as nvidia.com/gpu -> units of one machine. device_model: name of its devices.
    """

    name: str
    mem_bytes: int
    vcore: int
    resources: Mapping[str, int] = Field(default_factory=dict)
    device_model: str = ""

    @property
    def device(self) -> Device | None:
        """Returns the accelerators in layout.yaml: the first of `resources`, or None."""
        found = next(iter(self.resources.items()), None)
        return None if found is None else Device(type=found[0], model=self.device_model, count=found[1])

    def has_resource(self, prefix: str) -> bool:
        """Returns whether machines of this type have a resource with this prefix."""
        return any(name.startswith(prefix) for name in self.resources)

    @property
    def has_nvidia(self) -> bool:
        """Whether machines of this type have NVIDIA devices (also MIG slices, nvidia.com/mig-*)."""
        return self.has_resource("nvidia.com/")


class Ssh(FrozenModel):
    """The SSH access from the controller host to a machine. The password is also used for sudo."""

    user: str
    port: int = 22
    key_file: Path | None = None
    password: SecretStr | None = None


class Machine(FrozenModel):
    """One entry of machine-list. hostip: IPv4. sku: a key of Site.skus."""

    hostname: str
    hostip: str
    sku: str
    roles: frozenset[MachineRole] = frozenset()
    absent: bool = False
    ssh: Ssh
    labels: Mapping[str, str] = Field(default_factory=dict)
    taints: tuple[str, ...] = ()
    become: bool = True

    @property
    def control_plane(self) -> bool:
        """Whether it is a control plane of the cluster."""
        return "control-plane" in self.roles

    @property
    def worker(self) -> bool:
        """Whether it runs jobs."""
        return "worker" in self.roles

    @property
    def storage(self) -> bool:
        """Whether it serves storage."""
        return "storage" in self.roles

    @property
    def node(self) -> bool:
        """Returns whether it is a node of the cluster. A machine that only serves storage is none."""
        return self.control_plane or self.worker


class Site(FrozenModel):
    """A valid site. machines: in the order of machine-list, including absent ones.

    directory: absolute. places: setting of config.yaml, registry.KEY, or storages.NUMBER.KEY -> its FILE:LINE:COLUMN.
    rotations: storage -> its state, for storages with any rotation.
    """

    directory: Path
    skus: Mapping[str, Sku]
    machines: tuple[Machine, ...]
    settings: Settings
    services: Services = Services()
    places: Mapping[str, str] = Field(default_factory=dict)
    rotations: Mapping[str, StorageRotationState] = Field(default_factory=dict)

    @cached_property
    def present_machines(self) -> tuple[Machine, ...]:
        """All machines but the absent ones."""
        return tuple(machine for machine in self.machines if not machine.absent)

    @cached_property
    def control_planes(self) -> tuple[Machine, ...]:
        """The present control planes, the first one first."""
        return tuple(machine for machine in self.present_machines if machine.control_plane)

    @cached_property
    def workers(self) -> tuple[Machine, ...]:
        """Returns the present workers, including control-plane nodes that are also workers."""
        return tuple(machine for machine in self.present_machines if machine.worker)

    @cached_property
    def nodes(self) -> tuple[Machine, ...]:
        """The present machines that are nodes of the cluster."""
        return tuple(machine for machine in self.present_machines if machine.node)

    @cached_property
    def storage_servers(self) -> tuple[Machine, ...]:
        """The present machines that serve storage."""
        return tuple(machine for machine in self.present_machines if machine.storage)

    def machine(self, name: str) -> Machine:
        """The machine called `name`, absent or not. Raises KeyError."""
        for machine in self.machines:
            if machine.hostname == name:
                return machine
        raise KeyError(name)

    def sku_of(self, machine: Machine) -> Sku:
        """The hardware type of a machine of this site."""
        return self.skus[machine.sku]

    @cached_property
    def has_nvidia(self) -> bool:
        """Whether any present machine has NVIDIA devices."""
        return any(self.sku_of(machine).has_nvidia for machine in self.present_machines)

    def has_section(self, name: str) -> bool:
        """Whether services-configuration.yaml has that section."""
        return name in self.services.given

    @cached_property
    def driven_storages(self) -> frozenset[str]:
        """Types of its storages that a CSI driver mounts, where the site leaves the drivers to us."""
        types = frozenset(storage.type for storage in self.services.storages or ())
        return types & DRIVERS.keys() if self.settings.csi_drivers else frozenset()

    @property
    def openpai_style(self) -> bool:
        """Whether the site was written for OpenPAI: it names the tag of OpenPAI's service images."""
        return self.settings.docker_image_tag is not None
