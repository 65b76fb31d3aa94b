"""Remove machines from the cluster and from layout.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from pai_install.cluster.client import Select
from pai_install.cluster.drain import jobs_among, to_evict
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Node, Pod
from pai_install.kube.workloads import PodDisruptionBudget
from pai_install.operations.control_plane_removal import out_of_etcd, removed_planes
from pai_install.operations.node_cordon import ASKED, cordoning
from pai_install.operations.node_drain import NodeDrain, effects_on
from pai_install.operations.node_removal_steps import CLEAN, FORGET, LEAVE, cleaning, forgetting, removal_step
from pai_install.operations.operation import Operation
from pai_install.operations.quota_refresh import NAME as CAPACITY
from pai_install.operations.quota_refresh import capacity_steps
from pai_install.operations.removed_machines import QUERY, removed_machines
from pai_install.operations.verify import proof
from pai_install.plan.leader import leader_of, with_leader
from pai_install.plan.model import ClusterCall, ClusterCalls, HostStep, Plan, Step
from pai_install.plan.observation import Observation, require_leader
from pai_install.site.model import Machine, Site
from pai_install.system.words import plural

AWAIT = "await-jobs"


class NodeRemove(Operation):
    """Removes machines in this order: scheduler, pods, node, machine, layout. Completed steps are skipped.

    The planned site has the machines removed or absent. It is not in OPERATIONS, because the machines are read from the
    old layout.
    """

    name: ClassVar[str] = "node remove"
    summary: ClassVar[str] = "Remove machines from the cluster and from layout.yaml."
    configures: ClassVar[bool] = True
    machines: tuple[Machine, ...] = Field(min_length=1, exclude=True)
    nodes: tuple[str, ...] = Field(min_length=1, description="Host names of machines.")
    dead: bool = Field(default=False, description="Do not contact the machines.")
    wait: int | None = Field(None, ge=0, description="Seconds to wait until jobs have ended; null: not at all.")
    grace: int | None = Field(None, ge=0, description="End jobs, with so many seconds to save their work.")
    timeout: int = Field(300, ge=1, description="Seconds until the drain of a node counts as failed.")
    force: bool = Field(default=False, description="End jobs and protected pods at once.")
    how: str = Field(
        "remove", description="What becomes of the entry in layout.yaml: remove, absent, keep or replaced."
    )
    data: bool = Field(default=False, description="Also remove images and other data from the machines.")

    @property
    def guests(self) -> tuple[Machine, ...]:
        """The machines."""
        return self.machines

    def watched(self, site: Site) -> tuple[str, ...]:
        """The control planes, and the machines themselves unless they are dead."""
        planes = [machine.hostname for machine in site.control_planes]
        if self.dead:
            return tuple(name for name in planes if name not in self.nodes)
        return tuple(dict.fromkeys([*planes, *self.nodes]))

    @property
    def queries(self) -> tuple[Select, ...]:
        """Nodes, budgets, who is refused already, then the pods of each machine."""
        pods = (Select(("pods",), fields=f"spec.nodeName={name}") for name in self.nodes)
        return (Select(("nodes",)), Select(("poddisruptionbudgets",)), QUERY, *pods)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """Returns the remaining work. Raises PaiError for jobs that would be lost, and for allegedly dead machines that
        respond.
        """
        removed_planes(self.machines, site)
        leader = leader_of(site, observation.machines)
        require_leader(leader, observation.unreachable, observation.machines)
        return _Removal(self, site, observation).plan()

    def typed(self, plan: Plan) -> str:
        """Returns the machines to type, if there are several or a control-plane node. A replacement needs no name."""
        del plan
        if self.how == "replaced":
            return ""
        several = len(self.nodes) > 1 or any(machine.control_plane for machine in self.machines)
        return ",".join(self.nodes) if several else ""

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        """Which machines leave."""
        del plan, hosts
        if self.how == "replaced":
            return f"replace {', '.join(self.nodes)} by new hardware"
        return f"remove {', '.join(self.nodes)} from the cluster"


class _Removal:
    """One removal: existing objects and remaining work."""

    def __init__(self, operation: NodeRemove, site: Site, observation: Observation) -> None:
        self._operation, self._site, self._observation = operation, site, observation
        rows, budgets, refused, *pods = observation.answers
        known = {node.name: node for node in map(Node.parse, rows)}
        self._nodes = [known[name] for name in operation.nodes if name in known]
        self._budgets = tuple(map(PodDisruptionBudget.parse, budgets))
        self._refused = removed_machines(refused)
        self._pods = {name: to_evict(map(Pod.parse, found)) for name, found in zip(operation.nodes, pods, strict=True)}

    def plan(self) -> Plan:
        operation, observation = self._operation, self._observation
        self._require_dead()
        self._require_no_jobs()
        leader = leader_of(self._site, observation.machines)
        members = [node.name for node in self._nodes]
        rest = (
            # The kubelet of a dead machine never confirms the end of a pod, so a drain would not end.
            *(() if operation.dead else self._emptying()),
            *removal_step(self._nodes, self._refused, ASKED),
            *cleaning(observation.machines, self._reachable(), ASKED, data=operation.data),
        )
        capacity = tuple(capacity_steps(self._site, observation))
        steps = (*capacity, *rest)
        silent = {} if operation.dead else observation.unreachable
        known = [name for name in operation.nodes if name not in silent]
        touched = {*members, *(name for step in steps for name in step.names)} & {*operation.nodes}
        if operation.how == "remove" or touched:
            addresses = {machine.hostname: machine.hostip for machine in operation.machines}
            steps += forgetting(known, operation.how, ASKED, addresses)
        # a scheduler that still counts on a machine must not lose it
        steps = tuple(replace(step, needs=(*step.needs, CAPACITY)) if step.name != CAPACITY else step for step in steps)
        if steps:
            steps = out_of_etcd(steps, operation.machines, leader, (LEAVE, CLEAN, FORGET))
        # the capacity changes the first control plane
        changed = {name for step in capacity for name in step.names}
        steps += proof(self._site, observation, "after a change", changed) if changed else ()
        lost = {name: why for name, why in silent.items() if name in operation.nodes}
        state = "not asked whether it is clean; node add cleans it first" if operation.dead else "and clean"
        nothing = f"{', '.join(operation.nodes)}: no node of the cluster, {state}"
        return Plan(steps, with_leader(observation.inventory, leader), lost, leader, nothing=nothing)

    def _reachable(self) -> tuple[str, ...]:
        return () if self._operation.dead else self._operation.nodes

    def _require_dead(self) -> None:
        """Raises PaiError for a node that is said to be dead and is ready."""
        alive = [node.name for node in self._nodes if node.ready] if self._operation.dead else []
        if alive:
            do = "power it off first" if self._operation.how == "replaced" else "leave out --dead"
            raise PaiError(
                f"cannot treat {', '.join(alive)} as dead: the node is ready",
                code="node-not-dead",
                remedy=f"{do}. Kubernetes needs up to a minute to notice a lost node",
                exit_code=ExitCode.PREFLIGHT_FAILED,
            )

    def _require_no_jobs(self) -> None:
        operation = self._operation
        jobs = {name: found for name, pods in self._pods.items() if (found := jobs_among(pods))}
        decided = operation.dead or operation.force or operation.wait is not None or operation.grace is not None
        if not jobs or decided:
            return
        lines = [f"{name}: {line}" for name, found in jobs.items() for line in effects_on(found)]
        raise PaiError(
            f"cannot remove the nodes: jobs are running on {plural(len(jobs), 'node')}",
            code="machines-run-jobs",
            details="\n".join(lines),
            remedy=("add --wait to wait for their end, --grace S to stop them with S seconds to save data, or --force"),
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )

    def _emptying(self) -> Iterator[Step]:
        """No new pods, then no jobs, then no pods."""
        nodes = [node for node in self._nodes if node.name not in self._observation.unreachable]
        # what takes it back is another command: this one removes the node
        yield from (replace(step, undo=None, undo_verb="") for step in cordoning(nodes))
        yield from self._waiting(nodes)
        yield from self._draining(nodes)

    def _waiting(self, nodes: Sequence[Node]) -> Iterator[Step]:
        wait = self._operation.wait
        jobs = {node.name: jobs_among(self._pods[node.name]) for node in nodes}
        hosts = tuple(
            HostStep(name, (f"{plural(len(found), 'pod')} of jobs",)) for name, found in jobs.items() if found
        )
        if wait is None or not hosts:
            return
        words = {one.host: {"node": one.host, "timeout_s": wait} for one in hosts}
        calls = tuple(ClusterCall(host, "Wait for jobs to end", AWAIT, how) for host, how in words.items())
        yield Step(AWAIT, "Wait for running jobs", hosts, ClusterCalls(calls), needs=("cordon",))

    def _draining(self, nodes: Sequence[Node]) -> tuple[Step, ...]:
        operation = self._operation
        pods = {node.name: found for node in nodes if (found := self._pods[node.name])}
        if not pods:
            return ()
        drain = NodeDrain(nodes=tuple(pods), grace=operation.grace, timeout=operation.timeout, force=operation.force)
        # the user has said what is to become of jobs
        return drain.draining(pods, self._budgets, unmanaged=True)
