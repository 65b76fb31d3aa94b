"""What a run is going to do: plain values, the same for `plan`, `apply`, the journal and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Vars = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HostStep:
    """One host of a phase, and why the phase runs there.

    reasons: sentences without a full stop, e.g. "never installed", "/etc/hosts was changed by hand".
    effects: what it does to what runs there, e.g. "restarts docker.service". remarks: what that means for others.
    """

    host: str
    reasons: tuple[str, ...]
    effects: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedPhase:
    """One phase with the hosts it has work on; `hosts` is never empty.

    needs: names of earlier phases that must have succeeded on at least one of the machines that they
    have work on; a phase that is not in the plan is already done.
    """

    name: str
    title: str
    playbook: str
    hosts: tuple[HostStep, ...]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inventory:
    """What Ansible is given: groups of host names, variables of all hosts and of each."""

    groups: Mapping[str, tuple[str, ...]]
    shared_vars: Vars
    host_vars: Mapping[str, Vars]

    def as_ansible(self) -> dict[str, Any]:
        """The YAML/JSON inventory form: {"all": {"vars", "hosts": {...}, "children": {...}}}."""
        return {
            "all": {
                "vars": dict(self.shared_vars),
                "hosts": {host: dict(values) for host, values in self.host_vars.items()},
                "children": {group: {"hosts": {host: {} for host in hosts}} for group, hosts in self.groups.items()},
            }
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """Ordered phases with work, and the hosts that could not be observed.

    unreachable: host -> why; nothing is planned for these. lead: the control plane that the others join through.
    """

    phases: tuple[PlannedPhase, ...]
    inventory: Inventory
    unreachable: Mapping[str, str] = field(default_factory=dict)
    lead: str = ""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts with work, in the order in which phases name them."""
        return tuple(dict.fromkeys(step.host for phase in self.phases for step in phase.hosts))

    @property
    def empty(self) -> bool:
        """Whether every reachable machine already is what the site says."""
        return not self.phases
