"""A part, and the small values in its declaration. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from pai_install.parts.context import Context
from pai_install.site import Machine, Site

Clients = Literal["machines", "control planes", "itself", "pods"]


@dataclass(frozen=True, slots=True)
class Restarts:
    """Annotation of a role's variable: the units that restart on its change. Empty if the change needs no restart."""

    units: tuple[str, ...]


def restarts(*units: str) -> Restarts:
    """For the annotation of a role's variable."""
    return Restarts(units)


class RoleVariables(BaseModel):
    """Variables of one role. Field names are the role's variables without the role's name in front."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    role: ClassVar[str]

    def variables(self) -> dict[str, Any]:
        """As Ansible is given them: full names, plain values."""
        return {f"{self.role}_{name}": value for name, value in self.model_dump(mode="json").items()}

    @classmethod
    def restarting(cls) -> dict[str, tuple[str, ...]]:
        """Returns full variable name -> the units that restart on its change. Variables without units are omitted."""
        return {
            f"{cls.role}_{name}": marker.units
            for name, info in cls.model_fields.items()
            for marker in info.metadata
            if isinstance(marker, Restarts)
        }

    def settings(self) -> dict[str, Any]:
        """Returns the settings that run the role again on a change: names and values as in `variables`."""
        return self.variables()


@dataclass(frozen=True, slots=True)
class Port:
    """A port that a part listens on.

    programs: who holds it once installed (empty: the kernel). tolerated: programs that may hold it before.
    clients: who connects from elsewhere: all machines, the control planes, pods, or only the machine itself.
    """

    port: int
    purpose: str
    programs: tuple[str, ...] = ()
    protocol: Literal["tcp", "udp"] = "tcp"
    tolerated: tuple[str, ...] = ()
    clients: Clients = "itself"

    @property
    def local(self) -> bool:
        """Whether only the machine itself connects."""
        return self.clients == "itself"

    def __str__(self) -> str:
        return f"{self.port}/{self.protocol}"


@dataclass(frozen=True, slots=True)
class Space:
    """Disk space in GiB: the minimum for an installation, and enough for work."""

    least: int
    enough: int


class Part:
    """One installable part. A subclass declares its properties. The defaults mean "none".

    name: of its record on a machine, and in plans. phase: a name of plan.phases.TITLES.
    model: its role's variables. after: parts that must have succeeded before, on any machine that has them.
    restarts, stops: running units that the role restarts, or stops permanently, on a machine.
    namespaces: of its pods.
    not_settings: role variables that do not describe the machine. given_to_others: settings that machines without the
    part read from a machine with it, so that a change goes there first, even with --limit. removable: the role, run
    with its defaults, removes the part from machines that no longer need it.
    """

    name: str
    phase: str
    model: type[RoleVariables]
    after: tuple[str, ...] = ()
    restarts: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    not_settings: frozenset[str] = frozenset()
    given_to_others: frozenset[str] = frozenset()
    removable: bool = False

    @property
    def role(self) -> str:
        """The role that installs it."""
        return self.model.role

    @property
    def leader_variables(self) -> frozenset[str]:
        """The role's variable `leader`, where its model has it: the control plane to ask, no setting."""
        return frozenset({f"{self.role}_leader"} if "leader" in self.model.model_fields else ())

    def applies(self, site: Site, machine: Machine) -> bool:
        """Whether the part may have work there: to install or to remove it. Unless overridden, on every node."""
        del site
        return machine.node

    def machines(self, site: Site) -> tuple[Machine, ...]:
        """The present machines that it applies to."""
        return tuple(machine for machine in site.present_machines if self.applies(site, machine))

    def listens(self, site: Site, machine: Machine) -> bool:
        """Whether its ports are open there: those of pods may be elsewhere than the machine that applies them."""
        return self.applies(site, machine)

    def variables(self, context: Context, machine: Machine) -> RoleVariables | None:
        """Returns its role's variables on one of its machines, or None if the machine does not need it."""
        raise NotImplementedError

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """Machines with equal answers have equal variables, which are then made once for all of them."""
        del site
        return machine.hostname

    def components(self, site: Site) -> frozenset[str]:
        """Returns the components in the catalogue that it needs."""
        del site
        return frozenset()

    def images(self, site: Site, machine: Machine) -> tuple[str, ...]:
        """Images (of the catalogue) that its pods may be started from there, wherever it applies itself."""
        del site, machine
        return ()

    def ports(self, site: Site, machine: Machine) -> tuple[Port, ...]:
        """The ports that it listens on there."""
        del site, machine
        return ()

    def space(self, site: Site, machine: Machine) -> Mapping[str, Space]:
        """Path -> disk space that it needs there."""
        del site, machine
        return {}

    def kernel_modules(self, site: Site) -> tuple[str, ...]:
        """Kernel modules that it needs on every node."""
        del site
        return ()


def everywhere(site: Site, machine: Machine) -> Hashable:
    """For `Part.alike`: all machines have the same variables."""
    del site, machine
    return ()


def by_kind(site: Site, machine: Machine) -> Hashable:
    """For `Part.alike`: the variables depend on the machine's duties and its SKU alone."""
    del site
    return machine.control_plane, machine.worker, machine.sku


def is_leader(site: Site, machine: Machine) -> bool:
    """For `Part.applies`: the first control plane, where the cluster as a whole is worked on."""
    return machine.hostname == site.control_planes[0].hostname
