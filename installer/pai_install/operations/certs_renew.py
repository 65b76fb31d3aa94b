"""Renew the certificates of the control planes, and the controller host's copy of the administrator's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from pai_install.errors import ExitCode, PaiError
from pai_install.operations.kubeconfig import kubeconfig_step
from pai_install.operations.operation import Operation
from pai_install.operations.verify import certificates_of, proof
from pai_install.plan.certificates import CONTROLLER_HOST, KUBECONFIG, CertificateRow
from pai_install.plan.leader import leader_of, with_leader
from pai_install.plan.model import HostStep, Plan, Playbook, Step
from pai_install.plan.observation import Observation
from pai_install.site.model import Site
from pai_install.system.parameters import Parameter
from pai_install.system.words import plural

# kubeadm makes certificates of 365 days: those of this week are left alone, and so a run that was interrupted goes on
DEFAULT_WITHIN_DAYS = 358
RENEW = "certs-renew"
_RESTARTS = "restarts etcd, API server, controller manager and scheduler, one after the other"
_ALONE = "the API does not answer for some seconds: there is no other control plane"


class CertsRenew(Operation):
    """kubeadm's certificates on one control plane after another."""

    name: ClassVar[str] = "certs renew"
    summary: ClassVar[str] = "Renew the certificates of the control planes, one by one."
    configures: ClassVar[bool] = True  # the proof at the end is a role with settings
    within_days: Annotated[int, Parameter("--within", "DAYS")] = Field(
        DEFAULT_WITHIN_DAYS, ge=1, le=36500, description="Renew certificates that expire within this number of days."
    )

    def watched(self, site: Site) -> tuple[str, ...]:
        """The control planes."""
        return tuple(machine.hostname for machine in site.control_planes)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """A step on the control planes with a certificate that ends, and one for the controller host.

        Raises PaiError where no control plane that answered is in a cluster.
        """
        rows = certificates_of(site, observation)
        if not rows and observation.machines:
            raise PaiError(
                "cannot renew certificates: every control-plane node is unreachable",
                code="control-plane-silent",
                remedy="find the cause with pai-install status, or create the cluster with pai-install apply",
                exit_code=ExitCode.USAGE,
            )
        leader = leader_of(site, observation.machines)
        hosts = tuple(
            HostStep(name, (reason,), (_RESTARTS,), () if len(site.control_planes) > 1 else (_ALONE,))
            for name in self.watched(site)
            if (reason := self._reason([row for row in rows if row.subject == name]))
        )
        why = "the control plane's is renewed" if hosts else self._box(rows)
        steps = (
            *self._renewal(hosts),
            *((kubeconfig_step(site, leader, why),) if leader in observation.machines and why else ()),
            *(proof(site, observation, "after a change", [one.host for one in hosts]) if hosts else ()),
        )
        inventory = with_leader(observation.inventory, leader)
        return Plan(steps, inventory, observation.unreachable, leader, nothing=self._nothing(rows))

    def _renewal(self, hosts: tuple[HostStep, ...]) -> tuple[Step, ...]:
        action = Playbook("certs-renew.yml", {"certificates_within_days": self.within_days})
        return (Step(RENEW, "Renew the certificates of the control planes", hosts, action),) if hosts else ()

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        """What restarts where."""
        renewing = [name for step in plan.steps if step.name == RENEW for name in step.names if name in hosts]
        if not renewing:
            return "copy the administrator's kubeconfig to the controller host"
        return f"renew the certificates of {', '.join(renewing)} and restart their programs"

    def _due(self, rows: Sequence[CertificateRow]) -> list[CertificateRow]:
        return [
            row for row in rows if row.renewable and (row.unread or row.days is None or row.days < self.within_days)
        ]

    def _reason(self, rows: Sequence[CertificateRow]) -> str:
        due = self._due(rows)
        dated = [row for row in due if row.expires is not None and not row.unread]
        if not dated:
            return f"{due[0].path} {'is not in use yet' if due[0].unread else 'cannot be read'}" if due else ""
        first = min(dated, key=lambda row: (row.expires, row.path))
        return f"{plural(len(due), 'certificate')} end within {self.within_days} days, {first.path} on {first.date}"

    def _box(self, rows: Sequence[CertificateRow]) -> str:
        """Returns why the controller host needs the kubeconfig of a control-plane node, or ""."""
        own = [row for row in rows if (row.subject, row.path) == (CONTROLLER_HOST, KUBECONFIG)]
        # A controller host may be new, or may have lost its copy.
        if not own:
            return "the controller host has no kubeconfig"
        (row,) = own
        return "that of the controller host ends" if row.days is None or row.days < self.within_days else ""

    def _nothing(self, rows: Sequence[CertificateRow]) -> str:
        dated = [row for row in rows if row.renewable and row.expires is not None]
        first = min(dated, key=lambda row: (row.expires, row.path), default=None)
        until = f", the first on {first.date}" if first else ""
        return f"no certificate of a control plane ends within {self.within_days} days{until}"
