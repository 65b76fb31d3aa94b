"""Applies only the site's virtual clusters, and restores the last working ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from pydantic import Field, InstanceOf

from pai_install.cluster.client import Select
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.operation import Operation
from pai_install.operations.scheduler_test import quick_test
from pai_install.plan.addons import (
    NETWORK,
    addons_before,
    addons_following,
    addons_of_scheduler,
    measures_only,
    steps_of_addons,
    work_of_addons,
)
from pai_install.plan.addons import PHASE as ADDONS
from pai_install.plan.leader import leader_of, with_leader
from pai_install.plan.model import ClusterCall, ClusterCalls, HostStep, LocalWork, Plan, Step
from pai_install.plan.observation import Observation, require_leader
from pai_install.plan.phases import PHASES, Phase
from pai_install.plan.planner import make_plan
from pai_install.plan.scheduler_change import replaced_scheduler
from pai_install.schedulers.compile import objects_of
from pai_install.schedulers.last_applied import kept_object
from pai_install.schedulers.rollback import leftovers, relabelled, restored
from pai_install.scheduling.model import Backend, Scheduling
from pai_install.scheduling.read import scheduling_of
from pai_install.site.model import Site
from pai_install.site.selection import watched

STEP = "virtual-clusters"
LABELS = "labels"
# how long the scheduler may take until it has said something of every queue
WAIT_S = 60
# scenarios of the self-test that a change of virtual clusters is verified with
PROOF = ("quota",)
_PHASES: Mapping[str, Phase] = {phase.name: phase for phase in PHASES}


class VcApply(Operation):
    """Node labels and the add-ons of virtual clusters, if the cluster differs, then the scheduler's status."""

    name: ClassVar[str] = "vc apply"
    summary: ClassVar[str] = "Apply only the virtual clusters of the site."
    configures: ClassVar[bool] = True
    unproven: bool = Field(
        default=False, description="Also ask what the scheduler says of them where nothing is to be changed."
    )

    def watched(self, site: Site) -> tuple[str, ...]:
        """All present machines: workers have labels."""
        return watched(site, ())

    def plan(self, site: Site, observation: Observation) -> Plan:
        """Labels, add-ons, the look at them. Raises PaiError where `apply` comes first."""
        plan = make_plan(site, observation.inventory, observation.machines, unreachable=observation.unreachable)
        scheduling = scheduling_of(site)
        assert scheduling is not None  # noqa: S101 - the verb has asked
        addons = addons_of_scheduler(scheduling.backend)
        leader = site.control_planes[0].hostname
        # labels without the objects that name them would be half of the change
        require_leader(leader, plan.unreachable)
        _require_scheduler(site, observation, scheduling.backend)
        work, follow = _work(observation, leader), _following(observation, leader)
        needed = {name: why for name, why in work.items() if name in addons_before(addons) - follow}
        _require_first(_without_measuring(plan, observation, leader), needed)
        changes = (*_labels(plan), *steps_of_addons(plan.steps, (*sorted(follow), *addons), work))
        if not (changes or self.unproven):
            return replace(plan, steps=(), nothing="the cluster has these virtual clusters already")
        reason = "after a change" if changes else "the last run did not come to its end"
        return replace(plan, steps=(*changes, look(scheduling, plan.leader, reason)), proves_own=True)

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        """Which of the plan's steps change something is said above it."""
        del plan, hosts
        return "apply these virtual clusters"


class VcVerify(Operation):
    """The part of a proof that a change of virtual clusters needs: a queue keeps its quota. It is not in OPERATIONS."""

    name: ClassVar[str] = "vc apply"
    summary: ClassVar[str] = "Verify the quota of a queue after a change of virtual clusters."
    configures: ClassVar[bool] = True
    machines: tuple[str, ...] = Field(description="Changed machines.")

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One step of the scheduler's self-test. It verifies the changed machines, whose labels alone changed.

        It observes no machine: the change was made through the first control plane a moment ago.
        """
        leader = leader_of(site, observation.machines)
        steps = quick_test(site, observation, "after a change", (), scenarios=PROOF, proven=self.machines, waits=False)
        inventory = with_leader(observation.inventory, leader)
        return Plan(steps, inventory, observation.unreachable, leader, proves_own=True)


class VcRestore(Operation):
    """The virtual clusters of the scheduler's last successful start. It is not in OPERATIONS, which have none."""

    name: ClassVar[str] = "vc apply"
    summary: ClassVar[str] = "Restore the last working virtual clusters."
    good: InstanceOf[Scheduling] = Field(exclude=True)
    tried: InstanceOf[Scheduling] = Field(exclude=True)

    @property
    def queries(self) -> tuple[Select, ...]:
        """The nodes, for their labels."""
        return (Select(("nodes",)),)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """Returns labels, objects, and their verification. Ansible's records differ afterwards, as the site does."""
        leader = leader_of(site, observation.machines)
        back = Step(
            "restore",
            "Restore the last virtual clusters that worked",
            (HostStep(leader, ("the scheduler did not come up with the new ones",)),),
            ClusterCalls(tuple(self._calls(leader, observation.answers[0]))),
        )
        steps = (back, look(self.good, leader, "after a change"))
        return Plan(steps, with_leader(observation.inventory, leader), leader=leader)

    def _calls(self, leader: str, nodes: Sequence[Mapping[str, object]]) -> Iterator[ClusterCall]:
        for name, labels in relabelled(self.good, nodes).items():
            words = {"kind": "node", "name": name, "body": {"metadata": {"labels": labels}}}
            yield ClusterCall(leader, f"Label {name} as before", "patch", words)
        # whoever else set a field of theirs
        objects = {"objects": restored(self.good), "force": True}
        yield ClusterCall(leader, "Apply the objects as they were", "apply", objects)
        refs = [
            {"kind": kind, "name": name, "namespace": space} for kind, name, space in leftovers(self.good, self.tried)
        ]
        if refs:
            yield ClusterCall(leader, "Take away what was new", "delete", {"refs": refs})


def look(scheduling: Scheduling, leader: str, reason: str) -> Step:
    """Returns the step that reads the cluster's virtual clusters and the scheduler's status."""
    work = LocalWork(STEP, {"kept": kept_object(scheduling), "wait_s": WAIT_S})
    host = HostStep(leader, (f"{reason}; {len(objects_of(scheduling))} objects",))
    return Step(STEP, "Check the virtual clusters in the scheduler", (host,), work, looks=True)


def _work(observation: Observation, leader: str) -> dict[str, list[str]]:
    """Add-on -> why it has work."""
    seen = observation.machines.get(leader)
    return {} if seen is None else work_of_addons(observation.inventory.settings_of(leader), seen)


def _following(observation: Observation, leader: str) -> frozenset[str]:
    """Other add-ons that differ only in values that follow from the virtual clusters."""
    seen = observation.machines.get(leader)
    return frozenset() if seen is None else addons_following(observation.inventory.settings_of(leader), seen)


def _without_measuring(plan: Plan, observation: Observation, leader: str) -> Plan:
    """The plan without work that only measures, such as a metrics-server that was changed by hand."""
    seen = observation.machines.get(leader)
    if seen is None or not measures_only(observation.inventory.settings_of(leader), seen):
        return plan
    return replace(plan, steps=tuple(step for step in plan.steps if step.name != NETWORK))


def _require_scheduler(site: Site, observation: Observation, wanted: Backend) -> None:
    """The cluster has the scheduler of the site. Raises PaiError."""
    before = replaced_scheduler(site, observation)
    if before is not None:
        raise PaiError(
            f"cannot apply virtual clusters of {wanted}: the cluster has the scheduler {before}",
            code="scheduler-differs",
            remedy=f"no changes made. Run pai-install scheduler switch --site {site.directory} --to {wanted}",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )


def _require_first(plan: Plan, addons: Mapping[str, Sequence[str]]) -> None:
    """Nothing that virtual clusters stand on is left to do. Raises PaiError."""
    earlier = list(_PHASES)[: list(_PHASES).index(LABELS)]
    left = [
        f"{step.name}: {host.host}: {'; '.join(host.reasons)}"
        for step in plan.steps
        if step.name in earlier
        for host in step.hosts
    ]
    left += [f"{ADDONS}: {'; '.join(why)}" for why in addons.values()]
    if left:
        raise PaiError(
            "cannot apply virtual clusters alone: the scheduler or the groups differ from the site",
            code="scheduler-not-applied",
            details="\n".join(left),
            remedy="run pai-install apply",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )


def _labels(plan: Plan) -> Iterator[Step]:
    yield from (step for step in plan.steps if step.name == LABELS)
