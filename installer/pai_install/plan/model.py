"""The plan of a run as plain values, the same for `plan`, `apply`, the journal and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pai_install.checks.finding import Finding
from pai_install.redact import Redactor, secret_values

Vars = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HostStep:
    """One host of a step, with the reasons for the step there.

    reasons: sentences without a full stop, e.g. "never installed", "/etc/hosts was changed by hand".
    effects: what it does to what runs there, e.g. "restarts docker.service". impact: what that means for others.
    roles: those of the step's playbook that have work there; empty for all.
    """

    host: str
    reasons: tuple[str, ...]
    effects: tuple[str, ...] = ()
    impact: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Playbook:
    """Ansible runs a playbook on the step's hosts. playbook: a name below playbooks/; variables: extra variables."""

    playbook: str
    variables: Vars = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterCall:
    """One request to the Kubernetes API on behalf of one host of the step.

    title: what it does, e.g. "Cordon the node". verb: one of run/cluster_calls.py; arguments: what that takes.
    """

    host: str
    title: str
    verb: str
    arguments: Vars


@dataclass(frozen=True, slots=True)
class ClusterCalls:
    """Calls to the Kubernetes API, in order; a failed one ends its host's turn, never that of the others."""

    calls: tuple[ClusterCall, ...]


@dataclass(frozen=True, slots=True)
class LocalWork:
    """Work on the dev box. name: one that the run's environment knows; it is given the step's hosts, gives findings."""

    name: str
    arguments: Vars = field(default_factory=dict)


Action = Playbook | ClusterCalls | LocalWork


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an operation, such as a phase of an installation; `hosts`, on which it has work, is never empty.

    needs: names of earlier steps that must have succeeded on at least one of the machines that they have work on; a
    step that is not in the plan is already done. after_all: names of earlier steps that must have succeeded on all of
    the machines that they have work on. undo: what takes it back; undo_verb: the verb of this program that
    does so on the machines named after it, e.g. "node uncordon". proves: it changes nothing that lasts, it shows that
    what the other steps made works; there is nothing to show in check mode. looks: it changes nothing and says nothing
    of whether the machine as a whole works.
    """

    name: str
    title: str
    hosts: tuple[HostStep, ...]
    action: Action
    needs: tuple[str, ...] = ()
    after_all: tuple[str, ...] = ()
    undo: Action | None = None
    undo_verb: str = ""
    proves: bool = False
    looks: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Its hosts' names."""
        return tuple(step.host for step in self.hosts)

    def undo_command(self, hosts: Sequence[str]) -> str:
        """The command that takes the step back on these of its hosts; empty where there is none."""
        return f"pai-install {self.undo_verb} {' '.join(hosts)}" if self.undo_verb and hosts else ""

    @property
    def previewed(self) -> bool:
        """Whether check mode can show what it would change."""
        return isinstance(self.action, Playbook) and not (self.proves or self.looks)


@dataclass(frozen=True)
class Inventory:
    """The inventory for Ansible: groups of host names, shared variables, variables of each host."""

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

    def variables_of(self, host: str) -> dict[str, Any]:
        """All variables of a host: those that all share, and its own over them."""
        return {**self.shared_vars, **self.host_vars[host]}

    def settings_of(self, host: str) -> Mapping[str, Any]:
        """Role -> its settings on a host: its own, or those that all share."""
        own = self.host_vars[host].get("pai_settings")
        return dict(own if own is not None else self.shared_vars.get("pai_settings", {}))

    @cached_property
    def redactor(self) -> Redactor:
        """Masks every secret of the inventory; made once, since it is asked for at every task."""
        return Redactor(secret_values(self.as_ansible()))


@dataclass(frozen=True)
class Plan:
    """Ordered steps with work, and the hosts that could not be observed.

    unreachable: host -> why; nothing is planned for these. leader: the control plane that the others join through.
    nothing: why there is nothing to do, for a plan without steps. silent: no machine answered. operation: which one
    this is the plan of, with its arguments as plain data. findings: what the operation says of the observation
    before anything ran. jobs: what the plan means for running jobs, as a sentence; empty where the steps tell it.
    """

    steps: tuple[Step, ...]
    inventory: Inventory
    unreachable: Mapping[str, str] = field(default_factory=dict)
    leader: str = ""
    nothing: str = "every machine that answered matches the site"
    silent: bool = False
    operation: str = ""
    arguments: Vars = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    jobs: str = ""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts with work, in the order in which steps name them."""
        return tuple(dict.fromkeys(host for step in self.steps for host in step.names))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do on any machine that answered."""
        return not self.steps

    @cached_property
    def redactor(self) -> Redactor:
        """Masks every secret of the inventory and of the steps' own variables."""
        own = secret_values([_variables(action) for step in self.steps for action in (step.action, step.undo)])
        return self.inventory.redactor.also(own)


def _variables(action: Action | None) -> Vars:
    match action:
        case Playbook(variables=variables):
            return variables
        case LocalWork(arguments=arguments):
            return arguments
        case ClusterCalls(calls=calls):
            return {f"call {number}": call.arguments for number, call in enumerate(calls)}
        case _:
            return {}
