"""Reboots machines in batches, and stops after the first batch that does not recover.

An interrupted command resumes from the state of the nodes: each has a mark with its old boot id until all are complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field

from pai_install.cluster.client import Select
from pai_install.cluster.drain import jobs_among, to_evict
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.labels import BOOT_TO_END, CORDONED_BY_REBOOT
from pai_install.kube.model import Node, Pod
from pai_install.kube.workloads import PodDisruptionBudget
from pai_install.operations.node_cordon import ASKED, NodeOperation, scheduling
from pai_install.operations.node_drain import NodeDrain, effects_on
from pai_install.operations.verify import HEALTH
from pai_install.plan.batches import batches, one_after_another, width
from pai_install.plan.model import ClusterCall, ClusterCalls, HostStep, LocalWork, Plan, Playbook, Step
from pai_install.plan.observation import Observation
from pai_install.site.model import Site
from pai_install.system.parameters import Parameter
from pai_install.system.words import plural

PLAYBOOK, AWAIT = "reboot.yml", "await-node"


class NodeReboot(NodeOperation):
    """Each batch is emptied, rebooted, asked for its health and given back before the next one begins."""

    name: ClassVar[str] = "node reboot"
    summary: ClassVar[str] = "Reboot nodes in batches. A failed batch stops the command."
    max_unavailable: Annotated[str, Parameter(metavar="N|N%")] = Field(
        "1", description="Nodes out of service at the same time."
    )
    grace: Annotated[int | None, Parameter(metavar="SECONDS", default="the pod's own")] = Field(
        None, ge=0, description="Grace period of a pod in seconds."
    )
    timeout: int = Field(600, ge=1, description="Time limit of each step, in seconds.")
    force: bool = Field(default=False, description="End jobs, and delete pods under a disruption budget.")

    def require(self, site: Site) -> None:
        """Checks that the machines are present workers, and that the width is valid."""
        width(self.max_unavailable, len(self.nodes))
        known = {machine.hostname: machine for machine in site.present_machines}
        planes = [name for name in self.nodes if name in known and known[name].control_plane]
        strange = [name for name in self.nodes if name not in known]
        if strange or planes:
            what = "it is not a present machine of this site" if strange else "it is a control-plane node"
            remedy = "" if strange else "reboot it by hand, one at a time. Wait for pai-install status in between"
            raise PaiError(
                f"cannot reboot {', '.join(strange or planes)}: {what}",
                code="unknown-machine" if strange else "reboot-control-plane",
                remedy=remedy,
                exit_code=ExitCode.USAGE,
            )

    @property
    def queries(self) -> tuple[Select, ...]:
        """Nodes, budgets, then the pods of each node."""
        pods = (Select(("pods",), fields=f"spec.nodeName={name}") for name in dict.fromkeys(self.nodes))
        return (*super().queries, Select(("poddisruptionbudgets",)), *pods)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """All batches that are left. Raises PaiError for jobs that would be lost, unless forced."""
        del site
        named = self.named(observation)
        nodes = [node for node in named if not _through(node)]
        budgets = tuple(map(PodDisruptionBudget.parse, observation.answers[1]))
        rows = zip(named, observation.answers[2:], strict=True)
        pods = {node.name: to_evict(map(Pod.parse, found)) for node, found in rows if node in nodes}
        self._require_no_jobs(pods)
        known = {node.name: node for node in nodes}
        groups = [
            self._batch(number, [known[name] for name in names], pods, budgets)
            for number, names in enumerate(batches(list(known), width(self.max_unavailable, len(named))), start=1)
        ]
        return Plan(one_after_another([_marking(nodes), *groups, _forgetting(named)]), observation.inventory)

    def _require_no_jobs(self, pods: Mapping[str, Sequence[Pod]]) -> None:
        lines = [f"{name}: {line}" for name, found in pods.items() for line in effects_on(jobs_among(found))]
        if lines and not self.force:
            raise PaiError(
                "cannot reboot the nodes: jobs are running",
                code="node-runs-jobs",
                details="\n".join(lines),
                remedy="wait for their end after pai-install node cordon, or add --force",
                exit_code=ExitCode.PREFLIGHT_FAILED,
            )

    def _batch(
        self,
        number: int,
        nodes: Sequence[Node],
        pods: Mapping[str, Sequence[Pod]],
        budgets: Sequence[PodDisruptionBudget],
    ) -> tuple[Step, ...]:
        """Returns the steps of a batch. A node that a person cordoned stays cordoned."""
        drain = NodeDrain(nodes=self.nodes, grace=self.grace, timeout=self.timeout, force=self.force)
        full = {node.name: pods[node.name] for node in nodes if pods[node.name]}
        hosts = tuple(HostStep(node.name, (ASKED,), ("the machine is away until it has started",)) for node in nodes)
        # A node is Ready until its kubelet is missed. Only another boot id shows that the machine went down.
        wait = {node.name: {"node": node.name, "boot": node.boot_id, "timeout_s": self.timeout} for node in nodes}
        calls = tuple(ClusterCall(name, "Wait until the node is ready", AWAIT, how) for name, how in wait.items())
        steps = (
            *_cordoning([node for node in nodes if not node.cordoned]),
            *drain.draining(full, budgets, unmanaged=self.force),
            Step("reboot", "Reboot", hosts, Playbook(PLAYBOOK, {"pai_reboot_timeout": self.timeout})),
            Step("ready", "Wait for the nodes", _host_steps(nodes), ClusterCalls(calls)),
            # A machine that lost a GPU in its restart must not get jobs, so its health comes before the uncordon.
            Step(HEALTH, "Check the health of the machines", _host_steps(nodes), LocalWork("health-gate")),
            *_giving_back([node for node in nodes if not node.cordoned or _is_own(node)]),
        )
        return tuple(_numbered(step, number) for step in steps)

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        """How many, how many at a time, and how many an interrupted command rebooted already."""
        left = {name for step in plan.steps if isinstance(step.action, Playbook) for name in step.names}
        away = width(self.max_unavailable, len(dict.fromkeys(self.nodes)))
        done = len(set(hosts) - left)
        before = f"; an interrupted command rebooted {done} more already" if done else ""
        return f"reboot {plural(len(left), 'machine')}, {away} at a time{before}"


def _is_own(node: Node) -> bool:
    """Whether an interrupted reboot took the node out of scheduling."""
    return CORDONED_BY_REBOOT in node.labels


def _through(node: Node) -> bool:
    """Returns whether an interrupted command rebooted and uncordoned the node. A node that is still cordoned is
    unhealthy.
    """
    return node.labels.get(BOOT_TO_END, node.boot_id) != node.boot_id and not _is_own(node)


def _marking(nodes: Sequence[Node]) -> tuple[Step, ...]:
    """Returns the step that marks the nodes, so that the next command can resume after an interruption."""
    new = [node for node in nodes if BOOT_TO_END not in node.labels]
    calls = tuple(_note(node, "Note the boot that is to end", node.boot_id) for node in new)
    return (Step("mark", "Record the pending reboots", _host_steps(new), ClusterCalls(calls)),) if new else ()


def _forgetting(nodes: Sequence[Node]) -> tuple[Step, ...]:
    """The step after which the next command begins with all of them again."""
    calls = tuple(_note(node, "Forget the boot that ended", None) for node in nodes)
    again = "an interrupted command rebooted it already"
    hosts = tuple(HostStep(node.name, (again if _through(node) else ASKED,)) for node in nodes)
    return (Step("forget", "Delete the records of finished reboots", hosts, ClusterCalls(calls)),)


def _note(node: Node, title: str, boot: str | None) -> ClusterCall:
    body = {"metadata": {"labels": {BOOT_TO_END: boot}}}
    return ClusterCall(node.name, title, "patch", {"kind": "node", "name": node.name, "body": body})


def _cordoning(nodes: Sequence[Node]) -> tuple[Step, ...]:
    calls = tuple(scheduling(node.name, stop=True, mark=CORDONED_BY_REBOOT) for node in nodes)
    hosts = tuple(HostStep(node.name, (ASKED,), ("no new pods start there",)) for node in nodes)
    return (Step("cordon", "Cordon the nodes", hosts, ClusterCalls(calls)),) if nodes else ()


def _host_steps(nodes: Sequence[Node]) -> tuple[HostStep, ...]:
    return tuple(HostStep(node.name, (ASKED,)) for node in nodes)


def _giving_back(nodes: Sequence[Node]) -> tuple[Step, ...]:
    if not nodes:
        return ()
    calls = tuple(scheduling(node.name, stop=False, mark=CORDONED_BY_REBOOT) for node in nodes)
    return (Step("uncordon", "Uncordon the nodes", _host_steps(nodes), ClusterCalls(calls)),)


def _numbered(step: Step, number: int) -> Step:
    """Returns the step with a name that is unique among batches, without an undo of its own."""
    needs = tuple(f"{name}-{number}" for name in step.needs)
    return replace(
        step, name=f"{step.name}-{number}", title=f"Batch {number}: {step.title}", needs=needs, undo=None, undo_verb=""
    )
