"""Apply the site to the machines and verify the cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from pai_install.checks.finding import Finding
from pai_install.errors import ExitCode, PaiError
from pai_install.health.cluster.conditions import cluster_findings
from pai_install.health.cluster.identity import identity_findings
from pai_install.operations.kubeconfig import kubeconfig_step, missing_kubeconfig
from pai_install.operations.operation import Operation
from pai_install.operations.scheduler_step import require_ended, switch_step
from pai_install.operations.verify import (
    findings_on_certificates,
    fixed_settings,
    proof,
    scheduler_proof,
    wanted_of_cluster,
)
from pai_install.plan.changes import RefusedChange
from pai_install.plan.model import Plan, Step
from pai_install.plan.observation import Observation
from pai_install.plan.partial_upgrade import upgrade_findings
from pai_install.plan.phases import PHASE_NAMES, PHASES, VERIFY, require_phases
from pai_install.plan.planner import make_plan, work_of
from pai_install.plan.scheduler_change import replaced_scheduler
from pai_install.plan.versions import KUBERNETES, of_cluster
from pai_install.schedulers.registry import backend_of
from pai_install.scheduling.model import Backend
from pai_install.site.model import Site
from pai_install.site.schedulers import scheduler_of
from pai_install.site.selection import require_present, watched
from pai_install.system.parameters import Parameter
from pai_install.system.words import shortened

_ADDONS = next(phase for phase in PHASES if phase.name == "addons")
_QUOTAS = "addon.virtual_clusters"


class Install(Operation):
    """Everything that `apply` does."""

    name: ClassVar[str] = "apply"
    summary: ClassVar[str] = "Apply the site to the machines and verify the cluster."
    configures: ClassVar[bool] = True
    phases: Annotated[tuple[str, ...], Parameter("--phase", "NAME,...", split=True)] = Field(
        (), description=f"Run only these phases, of {', '.join(PHASE_NAMES)}."
    )
    limit: Annotated[tuple[str, ...], Parameter(metavar="HOST,...", split=True)] = Field(
        (), description="Run only on these machines of the site."
    )
    verify: bool = Field(
        default=True, description="Skip the verification. The next run without this option verifies the cluster."
    )

    @field_validator("phases")
    @classmethod
    def _known_phases(cls, phases: tuple[str, ...]) -> tuple[str, ...]:
        require_phases(phases)
        return phases

    def require(self, site: Site) -> None:
        """The machines must be present ones of the site, and no phase may be both named and skipped."""
        if not self.verify and VERIFY.name in self.phases:
            raise PaiError(
                "cannot combine --no-verify with --phase verify",
                code="no-verify-contradicts-phase",
                remedy="remove one of them",
                exit_code=ExitCode.USAGE,
            )
        require_present(site, self.limit)

    def watched(self, site: Site) -> tuple[str, ...]:
        """Returns the selected machines and the control-plane nodes, or all machines without a selection."""
        return watched(site, self.limit)

    def refused_changes(self, site: Site, observation: Observation) -> tuple[RefusedChange, ...]:
        """Settings, names and addresses that are fixed once a cluster runs."""
        return fixed_settings(site, observation)

    def replaced_scheduler(self, site: Site, observation: Observation) -> Backend | None:
        """The scheduler that the site no longer has, unless the options leave out the phase of add-ons."""
        leader = site.control_planes[0].hostname
        # The options may leave out the add-ons. Then the old scheduler stays.
        left_out = (self.phases and _ADDONS.name not in self.phases) or (self.limit and leader not in self.limit)
        return None if left_out else replaced_scheduler(site, observation)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """Returns the phases with work, and the verification of their changes and of machines that earlier runs did not
        verify. If the site has another scheduler, the jobs of the old one end first.

        Raises PaiError if jobs of the old scheduler run or wait.
        """
        plan = self._installation(site, observation)
        before = self.replaced_scheduler(site, observation)
        if before is None:
            return plan
        to = scheduler_of(site)
        require_ended(site, before, to, observation.kept_jobs)
        return replace(plan, steps=(switch_step(site, before, to), *plan.steps)) if observation.kept_jobs else plan

    def _installation(self, site: Site, observation: Observation) -> Plan:
        plan = make_plan(
            site,
            observation.inventory,
            observation.machines,
            unreachable=observation.unreachable,
            phases=self.phases,
            limit=self.limit,
        )
        proving = self._proof(site, observation, plan)
        steps = (*plan.steps, *self._kubeconfig(site, observation, plan), *proving)
        return replace(plan, steps=steps, jobs=_jobs(steps))

    def _kubeconfig(self, site: Site, observation: Observation, plan: Plan) -> tuple[Step, ...]:
        """The copy that the controller host lacks, unless the role that makes it runs anyway."""
        why = missing_kubeconfig(observation, plan.leader)
        made = any(step.name == "control-plane" and plan.leader in step.names for step in plan.steps)
        if not why or made or (self.phases and "control-plane" not in self.phases):
            return ()
        return (kubeconfig_step(site, plan.leader, why),)

    def _proof(self, site: Site, observation: Observation, plan: Plan) -> tuple[Step, ...]:
        if not self.verify or (self.phases and VERIFY.name not in self.phases):
            return ()
        # The plan may change machines outside the limit that the named ones need. Their change is verified, too.
        limit = {*self.limit, *plan.hosts} if self.limit else ()
        # A silent machine cannot be verified now, so it starts no verification.
        left = any(
            name in observation.unproven and name in observation.machines for name in limit or observation.machines
        )
        if not plan.empty:
            reason = "after a change"
        elif VERIFY.name in self.phases:
            reason = "asked for"
        elif left:
            reason = "some machines are not proven"
        else:
            return ()
        changed = changes_scheduler(site, observation, plan)
        return (
            *proof(site, observation, reason, limit),
            *scheduler_proof(site, observation, limit, changed=changed),
        )

    def known(self, site: Site, observation: Observation, plan: Plan) -> tuple[Finding, ...]:
        """Returns findings known before the run. A run with work verifies the cluster. Without work the findings report
        it.

        Nodes outside the layout and incomplete upgrades are always reported.
        """
        if plan.empty:
            return site_findings(site, observation)
        machines = observation.machines
        return (*upgrade_findings(site, machines), *identity_findings(site, machines))

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        """The question in the words of an installation."""
        return f"run {len(plan.steps)} phases on {len(hosts)} machines"


def _jobs(steps: Iterable[Step]) -> str:
    """Returns the consequences for jobs. An installation drains no node and stops no pod, except as noted
    for a machine.
    """
    remarked = dict.fromkeys(host.host for step in steps for host in step.hosts if host.impact)
    but = f", but read the remarks of {shortened(remarked)}" if remarked else ""
    return f"Running jobs keep running{but}."


def changes_scheduler(site: Site, observation: Observation, plan: Plan) -> bool:
    """Returns whether the plan installs or changes the batch scheduler. A change of virtual clusters does not."""
    leader = site.control_planes[0].hostname
    step = next((step for step in plan.steps if step.name == _ADDONS.name and leader in step.names), None)
    if step is None or leader not in observation.machines:
        return False
    seen = observation.machines[leader]
    work = work_of(_ADDONS, observation.inventory.settings_of(leader), seen)
    # Kubernetes' own scheduler has no add-on. The first quotas show that the site has chosen it.
    first = _QUOTAS in work and _QUOTAS not in seen.roles
    backend = scheduler_of(site)
    changed = {f"addon.{name}" for name in backend_of(backend).tested_addons} if backend is not None else set()
    return first or bool(changed & work.keys())


def site_findings(site: Site, observation: Observation) -> tuple[Finding, ...]:
    """Findings about the cluster from the observation."""
    planned = wanted_of_cluster(site, observation)["control_plane_version"]
    version = of_cluster(site, observation.machines).get(KUBERNETES, str(planned))  # what runs stays
    return (
        *(change.as_finding() for change in fixed_settings(site, observation)),
        *cluster_findings(site, version, observation.machines),
        *upgrade_findings(site, observation.machines),
        *findings_on_certificates(site, observation),
        *identity_findings(site, observation.machines),
    )
