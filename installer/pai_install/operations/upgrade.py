"""Upgrades or downgrades a running cluster: control-plane nodes one by one, then workers in batches.

The remaining work follows from the observation alone, so that the same command resumes an interrupted one.
upgrade_rules.py contains the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar

from pydantic import Field

from pai_install.checks.finding import Finding
from pai_install.cluster.client import Select
from pai_install.cluster.drain import moves, to_evict
from pai_install.kube.labels import CORDONED_BY_UPGRADE
from pai_install.kube.model import Node, Pod
from pai_install.operations.backup import Backup
from pai_install.operations.node_cordon import scheduling
from pai_install.operations.operation import Operation
from pai_install.operations.upgrade_rules import (
    require_applied,
    require_components,
    require_control_planes,
    require_kubernetes,
    require_owners,
    require_target,
    require_unused_apis,
    warnings,
)
from pai_install.operations.verify import HEALTH, fixed_settings, proof
from pai_install.plan.batches import batches, one_after_another, width
from pai_install.plan.changes import RefusedChange
from pai_install.plan.model import ClusterCall, ClusterCalls, HostStep, LocalWork, Plan, Playbook, Step
from pai_install.plan.observation import Observation
from pai_install.plan.planner import make_plan
from pai_install.plan.versions import (
    KUBERNETES,
    UNDER_PODS,
    Versions,
    desired_version,
    differences,
    fits,
    installed,
    promised,
)
from pai_install.site.model import Machine, Site
from pai_install.site.selection import watched
from pai_install.system.parameters import Parameter
from pai_install.system.words import plural, shortened

_RUNTIME, _CONTROL_PLANE, _WORKERS = "runtime", "control-plane", "workers"
# phases that carry versions, and run once for the cluster after its control planes
_FOR_ALL = ("network", "addons")
# what is brought to a control plane before kubeadm asks for it; nothing restarts for it
_BEFORE = ("system_images",)
_RESTARTS = frozenset({"container_runtime", "kubernetes_node"})


class Upgrade(Operation):
    """Everything that `upgrade` does."""

    name: ClassVar[str] = "upgrade"
    summary: ClassVar[str] = "Upgrade Kubernetes, runtimes, and add-ons, node by node."
    configures: ClassVar[bool] = True
    checks_deprecated: ClassVar[bool] = True
    to: Annotated[str, Parameter(metavar="VERSION", default="the version in config.yaml")] = Field(
        "", description="Kubernetes version: 1.36 or 1.36.3."
    )
    max_unavailable: Annotated[str, Parameter(metavar="N|N%")] = Field(
        "1", description="Workers out of service at the same time."
    )
    grace: Annotated[int | None, Parameter(metavar="SECONDS", default="the pod's own")] = Field(
        None, ge=0, description="Grace period of a pod in seconds."
    )
    timeout: int = Field(600, ge=1, description="Time limit of each node's drain and of its return, in seconds.")
    force: bool = Field(
        default=False,
        description=(
            "Also delete pods without a controller or under a disruption budget. Ignore APIs in use that the new "
            "version removes."
        ),
    )

    def require(self, site: Site) -> None:
        """Checks that the width is valid, and that the version matches config.yaml."""
        width(self.max_unavailable, len(site.workers) or 1)
        require_target(site, self.to)

    def watched(self, site: Site) -> tuple[str, ...]:
        """All present machines."""
        return watched(site, ())

    @property
    def queries(self) -> tuple[Select, ...]:
        """Returns the queries of nodes, pods, and the backup."""
        # The queries of the backup are last: its plan gets the rest of the answers.
        return (Select(("nodes",)), Select(("pods",)), *Backup().queries)

    def refused_changes(self, site: Site, observation: Observation) -> tuple[RefusedChange, ...]:
        """Returns the changes that `apply` refuses, except the version."""
        return tuple(one for one in fixed_settings(site, observation) if one.name != "kubernetes_version")

    def versions(self, site: Site, observation: Observation) -> Mapping[str, Versions]:
        """Of every machine: those of the catalogue, and Kubernetes as asked for."""
        del observation
        target = (
            desired_version(site) if fits(desired_version(site), self.to) else self.to
        )  # config.yaml may say the patch, too
        return {machine.hostname: {KUBERNETES: target} for machine in site.present_machines} if target else {}

    def plan(self, site: Site, observation: Observation) -> Plan:
        """Returns the remaining steps. Raises PaiError with a remedy if the upgrade is not permitted."""
        work = _Work(self, site, observation)
        require_control_planes(site, observation)
        require_applied(site, observation)
        require_kubernetes(work.had, work.target)
        require_components(work.had, work.wanted)
        require_unused_apis(observation.deprecated, work.target, force=self.force)
        steps = work.steps()
        require_owners({name: work.pods_of(name) for step in steps for name in _drained(step)}, force=self.force)
        nothing = f"every machine that answered has the versions of this site, Kubernetes {work.target}"
        return replace(work.whole, steps=steps, nothing=nothing)

    def known(self, site: Site, observation: Observation, plan: Plan) -> tuple[Finding, ...]:
        """Deprecated APIs that a later version will lack."""
        del site, plan
        return warnings(observation.deprecated)

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        """Returns the question with the consequences for pods."""
        drained = [name for step in plan.steps for name in _drained(step)]
        return f"upgrade {plural(len(hosts), 'machine')}, draining {plural(len(drained), 'node')}"


def _drained(step: Step) -> tuple[str, ...]:
    """The nodes that a step drains."""
    calls = step.action.calls if isinstance(step.action, ClusterCalls) else ()
    return tuple(call.host for call in calls if call.verb == "drain")


@dataclass(frozen=True)
class _Work:
    """The work of one upgrade, from the planner's steps to the desired versions."""

    operation: Upgrade
    site: Site
    observation: Observation

    @cached_property
    def whole(self) -> Plan:
        """Returns the plan of an `apply` with these versions."""
        seen = self.observation
        return make_plan(self.site, seen.inventory, seen.machines, unreachable=seen.unreachable)

    @cached_property
    def had(self) -> dict[str, dict[str, str]]:
        """Machine -> the versions that it has."""
        return {host: installed(self.observation.machines[host]) for host in self.members}

    @cached_property
    def wanted(self) -> dict[str, dict[str, str]]:
        """Machine -> the versions that it is to have."""
        inventory = self.observation.inventory
        return {host: {**promised(inventory.variables_of(host)), KUBERNETES: self.target} for host in self.members}

    @cached_property
    def leader(self) -> str:
        return self.whole.leader

    @cached_property
    def target(self) -> str:
        """The Kubernetes version to come to."""
        return str(self.observation.inventory.variables_of(self.leader)["control_plane_version"])

    @cached_property
    def members(self) -> dict[str, Machine]:
        """Returns the responding machines that are nodes. `apply` handles the others."""
        seen = self.observation.machines
        found = {machine.hostname: machine for machine in self.site.present_machines}
        return {name: it for name, it in found.items() if name in seen and seen[name].kubernetes.node}

    @cached_property
    def nodes(self) -> dict[str, Node]:
        return {node.name: node for node in map(Node.parse, self.observation.answers[0])}

    @cached_property
    def _pods(self) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for pod in to_evict(map(Pod.parse, self.observation.answers[1])):
            found.setdefault(pod.node, []).append(pod)
        return found

    def pods_of(self, host: str) -> Sequence[Pod]:
        """The pods that a drain of a machine evicts."""
        return self._pods.get(host, [])

    @cached_property
    def _by_phase(self) -> dict[str, dict[str, HostStep]]:
        """Returns phase -> machine -> work of the planner there. Cached, because every machine reads it."""
        return {
            step.name: {host.host: host for host in step.hosts if host.host in self.members}
            for step in self.whole.steps
        }

    def _planned(self, phase: str) -> dict[str, HostStep]:
        return self._by_phase.get(phase, {})

    def steps(self) -> tuple[Step, ...]:
        """All steps, in order."""
        planes = [self._control_plane(it.hostname, number) for number, it in enumerate(self.site.control_planes, 1)]
        once = [step for step in self.whole.steps if step.name in _FOR_ALL]
        first = [step for step in self.whole.steps if step.name == "components"]
        # Workers hold no data of the cluster, so only a change of a control plane needs a way back.
        if any(planes):
            first += self._backup()
        groups = [group for group in (first, *planes, once, *self._batches()) if group]
        after = proof(self.site, self.observation, "after an upgrade") if groups else ()
        return one_after_another([*groups, after])

    def _backup(self) -> tuple[Step, ...]:
        """The steps of `backup`, which give the way back."""
        target = replace(self.observation, answers=self.observation.answers[2:])
        return Backup().plan(self.site, target).steps

    def _control_plane(self, host: str, number: int) -> tuple[Step, ...]:
        """kubeadm first, as it asks for: the kubelet is never newer than the API server."""
        runtime, manager = self._planned(_RUNTIME).get(host), self._planned(_CONTROL_PLANE).get(host)
        name, of = f"control-plane-{number}", f"Control plane {host}"
        steps: list[Step] = []
        if manager is not None:
            if runtime is not None and (not runtime.roles or set(_BEFORE) & set(runtime.roles)):
                before = replace(runtime, roles=_BEFORE, effects=(), impact=())
                steps.append(Step(f"{name}-images", f"{of}: bring its images", (before,), Playbook("runtime.yml")))
            explained = replace(manager, reasons=self._reasons(host) or manager.reasons)
            steps.append(Step(name, f"{of}: upgrade by kubeadm", (explained,), Playbook("control-plane.yml")))
        return (*steps, *self._through(name, of, (host,)))

    def _batches(self) -> Iterator[tuple[Step, ...]]:
        # A worker that is a control plane is upgraded among the control planes.
        workers = [it.hostname for it in self.site.workers if not it.control_plane and it.hostname in self.members]
        left = [host for host in workers if self._has_work(host)]
        chunks = batches(left, width(self.operation.max_unavailable, len(workers) or 1))
        for number, hosts in enumerate(chunks, 1):
            title = f"Workers {number}/{len(chunks)}"
            yield self._through(f"workers-{number}", title, hosts)

    def _has_work(self, host: str) -> bool:
        return host in self._planned(_RUNTIME) or host in self._planned(_WORKERS) or self._marked(host)

    def _marked(self, host: str) -> bool:
        """Whether an upgrade that was interrupted took the node out of scheduling."""
        node = self.nodes.get(host)
        return node is not None and CORDONED_BY_UPGRADE in node.labels

    def _through(self, name: str, title: str, hosts: Sequence[str]) -> tuple[Step, ...]:
        """Returns drain, change, and uncordon, without a drain if nothing restarts under the pods."""
        runtime = [self._planned(_RUNTIME)[host] for host in hosts if host in self._planned(_RUNTIME)]
        member = [host for host in hosts if not self.members[host].control_plane and self._joins_again(host)]
        away = [host for host in hosts if self._restarts(host)]
        steps: list[Step] = []
        if away:
            steps.append(self._drain(f"{name}-drain", f"{title}: move the pods away", away))
        if runtime:
            explained = tuple(replace(one, reasons=self._reasons(one.host) or one.reasons) for one in runtime)
            steps.append(Step(f"{name}-runtime", f"{title}: runtimes and kubelet", explained, Playbook("runtime.yml")))
        if member:
            again = tuple(HostStep(host, ("the kubelet's settings belong to its version",)) for host in member)
            steps.append(Step(f"{name}-settings", f"{title}: settings of the kubelet", again, Playbook("workers.yml")))
        if back := [host for host in hosts if host in away or self._marked(host)]:
            steps += self._gpu_gate(name, title, [host for host in back if self._has_gpus(host)])
            steps.append(self._back(f"{name}-back", f"{title}: back into service", back))
        return tuple(steps)

    def _has_gpus(self, host: str) -> bool:
        return self.site.sku_of(self.members[host]).has_nvidia

    def _gpu_gate(self, name: str, title: str, hosts: Sequence[str]) -> tuple[Step, ...]:
        """Machines with GPUs are asked for their health once they are up, and before they get jobs: as for a reboot."""
        if not hosts:
            return ()
        away = tuple(HostStep(host, ("upgraded",)) for host in hosts)
        calls = ClusterCalls(tuple(self._awaited(host) for host in hosts))
        return (
            Step(f"{name}-ready", f"{title}: wait for the nodes", away, calls),
            Step(f"{name}-{HEALTH}", f"{title}: check the health of GPUs", away, LocalWork("health-gate")),
        )

    def _awaited(self, host: str) -> ClusterCall:
        how = {"node": host, "version": self.target, "timeout_s": self.operation.timeout}
        return ClusterCall(host, "Wait until the node is well", "await-node", how)

    def _joins_again(self, host: str) -> bool:
        planned = self._planned(_RUNTIME).get(host)
        whole = planned is not None and (not planned.roles or "kubernetes_node" in planned.roles)
        return whole or host in self._planned(_WORKERS) or self._marked(host)

    def _restarts(self, host: str) -> bool:
        """Whether the container runtime or the kubelet changes."""
        planned = self._planned(_RUNTIME).get(host)
        return planned is not None and (not planned.roles or bool(_RESTARTS & set(planned.roles)))

    def _reasons(self, host: str) -> tuple[str, ...]:
        changes = differences(self.had.get(host, {}), self.wanted.get(host, {}))
        return tuple(f"{name} {old} -> {new}" for name, (old, new) in changes.items() if name in (*UNDER_PODS, "etcd"))

    def _drain(self, name: str, title: str, hosts: Sequence[str]) -> Step:
        operation = self.operation
        calls: list[ClusterCall] = []
        for host in hosts:
            node = self.nodes.get(host)
            # A node that a person cordoned gets no mark, so that it stays cordoned after the upgrade.
            if not (node and node.cordoned):
                calls.append(scheduling(host, stop=True, mark=CORDONED_BY_UPGRADE))
            how = {"node": host, "grace_s": operation.grace, "timeout_s": operation.timeout, "force": operation.force}
            calls.append(ClusterCall(host, "Evict the pods", "drain", how))
        steps = tuple(HostStep(host, ("its runtimes restart",), tuple(_effects(self.pods_of(host)))) for host in hosts)
        return Step(name, title, steps, ClusterCalls(tuple(calls)))

    def _back(self, name: str, title: str, hosts: Sequence[str]) -> Step:
        """A node that a person took out of scheduling stays out."""
        calls: list[ClusterCall] = []
        for host in hosts:
            calls.append(self._awaited(host))
            node = self.nodes.get(host)
            if self._marked(host) or not (node and node.cordoned):
                calls.append(scheduling(host, stop=False, mark=CORDONED_BY_UPGRADE))
        return Step(name, title, tuple(HostStep(host, ("upgraded",)) for host in hosts), ClusterCalls(tuple(calls)))


def _effects(pods: Sequence[Pod]) -> Iterator[str]:
    """Yields the effects on the pods: lost work first."""
    lost = [f"{pod.namespace}/{pod.name}" for pod in pods if not moves(pod)]
    if lost:
        yield f"stops {shortened(lost)}"
    moving = [pod for pod in pods if moves(pod)]
    if moving:
        yield f"{plural(len(moving), 'pod starts', 'pods start')} elsewhere"
