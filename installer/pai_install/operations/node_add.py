"""Machines of the layout join the cluster: an installation limited to them, with the steps for a new node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from pai_install.checks.finding import Finding
from pai_install.cluster.client import Select
from pai_install.kube.model import Node
from pai_install.operations.install import Install
from pai_install.operations.node_removal_steps import cleaning, dirty, writing
from pai_install.operations.operation import Operation
from pai_install.operations.quota_refresh import capacity_steps
from pai_install.operations.verify import HEALTH, proof
from pai_install.plan.changes import RefusedChange
from pai_install.plan.model import Plan
from pai_install.plan.observation import Observation
from pai_install.plan.observed import Membership, Observed
from pai_install.plan.phases import VERIFY
from pai_install.site.model import Site
from pai_install.site.selection import require_present

_PROOFS = (VERIFY.name, HEALTH, "scheduler-test")


class NodeAdd(Operation):
    """Everything that `node add` does, once layout.yaml has the machines."""

    name: ClassVar[str] = "node add"
    summary: ClassVar[str] = "Add machines of layout.yaml to the cluster."
    configures: ClassVar[bool] = True
    nodes: tuple[str, ...] = Field(min_length=1, description="Host names of machines.")
    before: str = Field("", exclude=True, description="The text of layout.yaml from which `text` was made.")
    text: str = Field("", exclude=True, description="What layout.yaml is to be; empty: what it is.")

    def require(self, site: Site) -> None:
        """Present machines of the site."""
        require_present(site, self.nodes)

    def watched(self, site: Site) -> tuple[str, ...]:
        """Returns the machines and the control-plane nodes, and all machines if a control-plane node joins."""
        if self._planes(site):
            return tuple(machine.hostname for machine in site.present_machines)
        planes = [machine.hostname for machine in site.control_planes]
        return tuple(dict.fromkeys([*planes, *self.nodes]))

    def _planes(self, site: Site) -> bool:
        """Whether a control plane is among them: every machine has to know of it."""
        return any(site.machine(name).control_plane for name in self.nodes)

    @property
    def queries(self) -> tuple[Select, ...]:
        """The nodes."""
        return (Select(("nodes",)),)

    def refused_changes(self, site: Site, observation: Observation) -> tuple[RefusedChange, ...]:
        """Those of an installation."""
        return self._install(site, observation).refused_changes(site, observation)

    def _install(self, site: Site, observation: Observation) -> Install:
        """Of every machine only where a control plane joins that answers: of a silent one no other has to know."""
        answered = [name for name in self.nodes if name in observation.machines]
        joins = any(site.machine(name).control_plane for name in answered)
        return Install(limit=() if joins else self.nodes)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """Returns the installation of these machines. Former nodes are reset first."""
        nodes = {node.name: node for node in map(Node.parse, observation.answers[0])}
        leftover = _leftover(observation.machines, self.nodes, nodes)
        clean = cleaning(observation.machines, tuple(leftover), "it is no node of the cluster and was one")
        plan = self._install(site, observation).plan(site, _as_blank(observation, leftover))
        # The proofs are last, because the capacity of the scheduler changes before them.
        work = tuple(step for step in plan.steps if step.name not in _PROOFS)
        capacity = tuple(capacity_steps(site, observation))
        proofs = tuple(step for step in plan.steps if step.name in _PROOFS)
        if capacity:  # it changes the first control plane, which is proven then, too
            proven = {*plan.hosts, *self.nodes, *(name for step in capacity for name in step.names)}
            others = tuple(step for step in proofs if step.name not in (VERIFY.name, HEALTH))
            proofs = (*proof(site, observation, "after a change", proven), *others)
        written = writing(self.before, self.text, plan.leader) if self.text != self.before else ()
        if not any(name in observation.machines for name in self.nodes):
            return replace(plan, steps=written)  # no other machine needs anything for those that do not answer
        steps = (
            *written,
            *clean,
            *work,
            # The scheduler gets the capacity once the machines have joined and can take jobs.
            *capacity,
            *proofs,
        )
        nothing = f"{', '.join(self.nodes)}: nodes of the cluster already, as the site says"
        return replace(plan, steps=steps, nothing=nothing)

    def known(self, site: Site, observation: Observation, plan: Plan) -> tuple[Finding, ...]:
        """Those of an installation."""
        return self._install(site, observation).known(site, observation, plan)

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        """Which machines join."""
        del plan, hosts
        return f"add {', '.join(self.nodes)} to the cluster"


def _leftover(machines: Mapping[str, Observed], names: tuple[str, ...], nodes: Mapping[str, Node]) -> list[str]:
    """Machines that were nodes and are none: they were removed, or another machine has their name now."""
    found = []
    for name in names:
        seen = machines.get(name)
        if seen is None or not dirty(seen) or not seen.kubernetes.joined:
            continue
        node = nodes.get(name)
        if node is None or (node.machine_id and seen.machine_id and node.machine_id != seen.machine_id):
            found.append(name)
    return found


def _as_blank(observation: Observation, names: list[str]) -> Observation:
    """The observation with these machines as they will be once they are clean."""
    blank = {name: observation.machines[name].model_copy(update=_BLANK) for name in names}
    return replace(observation, machines={**observation.machines, **blank})


_BLANK: Mapping[str, object] = {"roles": {}, "kubernetes": Membership(), "certificates": (), "services": ()}
