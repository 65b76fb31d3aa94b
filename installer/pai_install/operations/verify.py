"""Prove that the cluster works."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, ClassVar

from pydantic import Field

from pai_install.checks.finding import Finding
from pai_install.health.cluster.identity import identity_findings, renamed
from pai_install.health.cluster.view import view_of
from pai_install.operations.operation import Operation
from pai_install.operations.scheduler_test import quick_test
from pai_install.plan.certificates import CertificateRow, certificate_findings, certificate_rows
from pai_install.plan.changes import RefusedChange, refused_changes
from pai_install.plan.leader import leader_of, with_leader
from pai_install.plan.model import HostStep, LocalWork, Plan, Playbook, Step, Vars
from pai_install.plan.observation import Observation
from pai_install.plan.phases import VERIFY
from pai_install.plan.versions import desired_version
from pai_install.site.model import Site
from pai_install.site.selection import require_present, watched
from pai_install.system.parameters import Parameter

HEALTH = "health"


class Verify(Operation):
    """Runs every check of a finished installation."""

    name: ClassVar[str] = "verify"
    summary: ClassVar[str] = "Test nodes, pods, DNS, services, runtimes, and time."
    configures: ClassVar[bool] = True
    limit: Annotated[tuple[str, ...], Parameter(metavar="HOST,...", split=True)] = Field(
        (), description="Run only on these machines of the site."
    )

    def require(self, site: Site) -> None:
        """The machines must be present ones of the site."""
        require_present(site, self.limit)

    def watched(self, site: Site) -> tuple[str, ...]:
        """Returns the selected machines and the control-plane nodes, or all machines without a selection."""
        return watched(site, self.limit)

    def refused_changes(self, site: Site, observation: Observation) -> tuple[RefusedChange, ...]:
        """Settings that are fixed once a cluster runs: verify could never pass."""
        return fixed_settings(site, observation)

    def known(self, site: Site, observation: Observation, plan: Plan) -> tuple[Finding, ...]:
        """Nodes that are not the layout's machines, and until when certificates are valid."""
        del plan
        return (*identity_findings(site, observation.machines), *findings_on_certificates(site, observation))

    def plan(self, site: Site, observation: Observation) -> Plan:
        """Returns the verification of the selected responding machines, or of all responding ones without a limit."""
        leader = leader_of(site, observation.machines)
        steps = proof(site, observation, "asked for", self.limit)
        steps += scheduler_proof(site, observation, self.limit)
        return Plan(steps, with_leader(observation.inventory, leader), observation.unreachable, leader)


def proof(site: Site, observation: Observation, reason: str, limit: Collection[str] = ()) -> tuple[Step, ...]:
    """Returns the steps that verify the cluster, then the machines' health, or () without a responding machine.

    reason: for machines without an earlier reason. limit: only these machines, empty for all.
    """
    answered = [machine for machine in site.present_machines if machine.hostname in observation.machines]
    proven = [machine for machine in answered if not limit or machine.hostname in limit]
    hosts = tuple(HostStep(one.hostname, (_reason(observation, one.hostname, reason),)) for one in proven)
    # A storage server beside the cluster has health, but no node to verify.
    nodes = tuple(step for step, machine in zip(hosts, proven, strict=True) if machine.node)
    steps = (
        Step(VERIFY.name, VERIFY.title, nodes, Playbook(VERIFY.playbook), VERIFY.needs, proves=True),
        Step(HEALTH, "Check the health of the machines", hosts, LocalWork(HEALTH), (VERIFY.name,), proves=True),
    )
    return tuple(step for step in steps if step.hosts)


def scheduler_proof(
    site: Site, observation: Observation, limit: Collection[str] = (), *, changed: bool = False
) -> tuple[Step, ...]:
    """Returns the step that verifies the scheduler's guarantees, for `proof`.

    It is omitted unless the scheduler changed, or the control-plane node that changed it is still unverified.
    """
    leader = site.control_planes[0].hostname
    left = leader in observation.unproven
    if not (changed or left) or (limit and leader not in limit) or leader not in observation.machines:
        return ()
    return quick_test(site, observation, _reason(observation, leader, "the scheduler has changed"), (VERIFY.name,))


def _reason(observation: Observation, name: str, otherwise: str) -> str:
    why = observation.unproven.get(name)
    return f"not proven: {why}" if why else otherwise


def findings_on_certificates(site: Site, observation: Observation) -> tuple[Finding, ...]:
    """Returns the findings on certificate expiry, or () if no control-plane node was observed in a cluster."""
    return certificate_findings(certificates_of(site, observation))


def certificates_of(site: Site, observation: Observation) -> tuple[CertificateRow, ...]:
    """The certificates of a cluster that a control plane was seen in."""
    if view_of(site, observation.machines) is None:
        return ()
    return certificate_rows(site, observation.machines, observation.box or (), observation.at)


def fixed_settings(site: Site, observation: Observation) -> tuple[RefusedChange, ...]:
    """Changes that the running cluster does not support."""
    wanted = wanted_of_cluster(site, observation)
    machines = observation.machines
    return refused_changes(
        site, desired_version(site), wanted["control_plane_endpoint"], machines, renamed(site, machines)
    )


def wanted_of_cluster(site: Site, observation: Observation) -> Vars:
    """Returns the variables of the first control-plane node, which contain the facts of the whole cluster."""
    return observation.inventory.variables_of(site.control_planes[0].hostname)
