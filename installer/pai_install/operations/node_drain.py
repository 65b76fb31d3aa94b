"""Empty nodes of their pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from pai_install.cluster.client import Select
from pai_install.cluster.drain import blocking, moves, to_evict, unmanaged
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Pod
from pai_install.kube.workloads import PodDisruptionBudget
from pai_install.operations.node_cordon import ASKED, NodeOperation, cordoning
from pai_install.plan.model import ClusterCall, ClusterCalls, HostStep, Plan, Step
from pai_install.plan.observation import Observation
from pai_install.site.model import Site
from pai_install.system.parameters import Parameter
from pai_install.system.words import plural, shortened

_GPU = "nvidia.com/"


class NodeDrain(NodeOperation):
    """Takes nodes out of scheduling and evicts their pods, within the disruption budgets."""

    name: ClassVar[str] = "node drain"
    summary: ClassVar[str] = "Cordon nodes and evict their pods."
    grace: Annotated[int | None, Parameter(metavar="SECONDS", default="the pod's own")] = Field(
        None, ge=0, description="Grace period of a pod in seconds."
    )
    timeout: int = Field(300, ge=1, description="Time limit of each node's drain, in seconds.")
    force: bool = Field(
        default=False, description="Also delete pods without a controller or under a disruption budget."
    )

    @property
    def queries(self) -> tuple[Select, ...]:
        """Nodes, budgets, then the pods of each node."""
        pods = (Select(("pods",), fields=f"spec.nodeName={name}") for name in dict.fromkeys(self.nodes))
        return (*super().queries, Select(("poddisruptionbudgets",)), *pods)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """Cordons, then drains the nodes that have pods to evict.

        Raises PaiError, naming them, for pods that nothing starts again, unless forced.
        """
        del site
        nodes = self.named(observation)
        budgets = tuple(map(PodDisruptionBudget.parse, observation.answers[1]))
        pods = {
            node.name: to_evict(map(Pod.parse, rows)) for node, rows in zip(nodes, observation.answers[2:], strict=True)
        }
        self._require_owners(pods)
        drain = self.draining({name: found for name, found in pods.items() if found}, budgets)
        nothing = f"{', '.join(self.nodes)}: out of scheduling, and nothing to move"
        return Plan((*cordoning(nodes), *drain), observation.inventory, nothing=nothing)

    def draining(
        self, pods: Mapping[str, Sequence[Pod]], budgets: Sequence[PodDisruptionBudget], *, unmanaged: bool = False
    ) -> tuple[Step, ...]:
        """Returns the step that evicts pods: node -> pods. unmanaged: also evict pods without a controller."""
        hosts = tuple(
            HostStep(name, (_reason(found),), tuple(effects_on(found)), tuple(self._impact(found, budgets)))
            for name, found in pods.items()
        )
        calls = ClusterCalls(tuple(self._call(host.host, unmanaged=unmanaged) for host in hosts))
        # Without the cordon, the scheduler could start the evicted pods on the same node again.
        return (Step("drain", "Evict the pods", hosts, calls, needs=("cordon",)),) if hosts else ()

    def _require_owners(self, pods: dict[str, tuple[Pod, ...]]) -> None:
        lost = [f"{pod.ref} on {name}" for name, found in pods.items() for pod in unmanaged(found)]
        if lost and not self.force:
            raise PaiError(
                f"cannot drain the nodes: no controller would re-create {len(lost)} of the pods",
                code="pods-without-controller",
                details="\n".join(lost),
                remedy="delete these pods yourself, or add --force",
                exit_code=ExitCode.PREFLIGHT_FAILED,
            )

    def _call(self, name: str, *, unmanaged: bool) -> ClusterCall:
        how = {"node": name, "grace_s": self.grace, "timeout_s": self.timeout, "force": self.force}
        how |= {"unmanaged": True} if unmanaged else {}
        return ClusterCall(name, "Evict the pods", "drain", how)

    def _impact(self, pods: Sequence[Pod], budgets: Sequence[PodDisruptionBudget]) -> Iterator[str]:
        local = [pod for pod in pods if pod.local_storage]
        if local:
            yield f"the emptyDir volumes of {len(local)} of them are lost"
        for pod in pods:
            for budget in blocking(pod, budgets):
                what = "--force removes it anyway" if self.force else f"the drain waits {self.timeout} s at most"
                holds = (
                    f"PodDisruptionBudget {budget.namespace}/{budget.name} does not allow {_name(pod)} to be"
                    " evicted now"
                )
                yield f"{holds}: {what}"


def _reason(pods: Sequence[Pod]) -> str:
    return f"{ASKED}; {plural(len(pods), 'pod')} to move"


def effects_on(pods: Sequence[Pod]) -> Iterator[str]:
    """Yields the effects on the pods: lost work first, by owner."""
    ended: dict[str, list[Pod]] = {}
    for pod in pods:
        if not moves(pod):
            owner = f"{pod.owner.kind} {pod.namespace}/{pod.owner.name}" if pod.owner else f"pod {_name(pod)}"
            ended.setdefault(owner, []).append(pod)
    for owner, found in ended.items():
        gpus = sum(amount for pod in found for name, amount in pod.requests.items() if name.startswith(_GPU))
        what = f"stops {owner}, {len(found)} running" if found[0].owner else f"removes {owner} permanently"
        yield f"{what}{f' on {gpus:g} GPUs' if gpus else ''}"
    moving = [pod for pod in pods if moves(pod)]
    if moving:
        yield f"starts elsewhere: {shortened(list(map(_name, moving)))}"


def _name(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"
