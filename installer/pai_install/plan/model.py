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

    reasons: sentences without a full stop, such as "never installed", "/etc/hosts was changed by hand". effects:
    restarts and stops, such as "restarts docker.service". impact: consequences for others. roles: roles of the step's
    playbook with work there, empty for all.
    """

    host: str
    reasons: tuple[str, ...]
    effects: tuple[str, ...] = ()
    impact: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Playbook:
    """Ansible runs a playbook on the step's hosts. playbook: a name below playbooks/. variables: extra variables."""

    playbook: str
    variables: Vars = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterCall:
    """One request to the Kubernetes API on behalf of one host of the step.

    title: its effect, such as "Cordon the node". verb: one of run/cluster_calls.py. arguments: of the verb.
    """

    host: str
    title: str
    verb: str
    arguments: Vars


@dataclass(frozen=True, slots=True)
class ClusterCalls:
    """Calls to the Kubernetes API, in order. A failed call ends the work of its host only."""

    calls: tuple[ClusterCall, ...]


@dataclass(frozen=True, slots=True)
class LocalWork:
    """Work on the controller host. name: a function of the run's environment, which takes the step's hosts and returns
    findings.
    """

    name: str
    arguments: Vars = field(default_factory=dict)


Action = Playbook | ClusterCalls | LocalWork


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an operation, such as a phase of an installation. `hosts` (with work) is never empty.

    needs: names of earlier steps that must have succeeded on at least one of their machines. A step outside the plan is
    already done. after_all: names of earlier steps that must have succeeded on all of their machines. undo: description
    of the revert. undo_verb: command that reverts it on the machines given as arguments, such as "node uncordon".
    proves: it makes no lasting change and verifies the results of the other steps, and does not run in check mode.
    looks: it changes nothing, and its success does not mean that the machine works. subject: the noun of its hosts.
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
    subject: str = "machine"

    @property
    def names(self) -> tuple[str, ...]:
        """Its hosts' names."""
        return tuple(step.host for step in self.hosts)

    def undo_command(self, hosts: Sequence[str]) -> str:
        """Returns the command that reverts the step on these hosts, or ""."""
        return f"pai-install {self.undo_verb} {' '.join(hosts)}" if self.undo_verb and hosts else ""

    @property
    def previewed(self) -> bool:
        """Returns whether check mode can preview its changes."""
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
        """Returns all variables of a host: the common ones, overridden by its own."""
        return {**self.shared_vars, **self.host_vars[host]}

    def settings_of(self, host: str) -> Mapping[str, Any]:
        """Returns role -> its settings on a host: its own or the common ones."""
        own = self.host_vars[host].get("pai_settings")
        return dict(own if own is not None else self.shared_vars.get("pai_settings", {}))

    @cached_property
    def redactor(self) -> Redactor:
        """Returns a filter for every secret of the inventory. It is cached, because every task uses it."""
        return Redactor(secret_values(self.as_ansible()))


@dataclass(frozen=True)
class Plan:
    """Ordered steps with work, and the hosts that could not be observed.

    unreachable: host -> cause. Nothing is planned for these. leader: the control-plane node that the others join
    through. nothing: why the plan has no steps. silent: no machine responded. operation: its name, with its arguments
    as plain data. findings: of the operation about the observation, before any change. jobs: consequences for running
    jobs, as a sentence, empty if the steps describe them. proves_own: its verification covers only changes of this
    operation, so machines that another operation left unverified stay unverified.
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
    proves_own: bool = False

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
