"""The objects of the self-test that every scheduler has in common, and which of them makes the others. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pai_install.schedulers.self_test.model import CORES, GANG, OURS, PREFIX, RUN, Gang, Rank, Scenario
from pai_install.scheduling.model import HOST_LABEL, Backend

JsonObject = dict[str, Any]
# Below any user's, so that no pod of the test evicts one of theirs: the higher one evicts pods of the test alone.
PRIORITIES: Mapping[Rank, int] = {"low": -1_000_000, "high": -999_999}
# What HiveD is told instead. Below any user's but oppo, so that HiveD lets a user's job have the place of the test's.
CELL_PRIORITIES: Mapping[Rank, int] = {"low": 0, "high": 1}
NOBODY = 65534


@dataclass(frozen=True, slots=True)
class CellSite:
    """A virtual cluster of the site that HiveD's scenarios are played in.

    guest: that of who borrows. leaf: HiveD's name for a cell of the SKU. unit: cells of a pod. room: pods that its
    guarantee has room for; total: that all machines of the SKU have. devices: whether cells are devices.
    """

    cluster: str
    guest: str
    sku: str
    leaf: str
    unit: int
    room: int
    total: int
    devices: bool


@dataclass(frozen=True, slots=True)
class SelfTestContext:
    """What all objects of a run share. run: marks them. image: has busybox. machines: names of the nodes to use.

    groups: Volcano's names for groups of these nodes, which a queue has to name. cells: where HiveD runs the test.
    """

    backend: Backend
    run: str
    image: str
    machines: tuple[str, ...]
    groups: tuple[str, ...] = ()
    cells: CellSite | None = None

    @property
    def labels(self) -> dict[str, str]:
        """Of every object."""
        name, _, value = OURS.partition("=")
        return {name: value, RUN: self.run}


def class_name(rank: Rank) -> str:
    """The name of the test's priority class."""
    return f"{PREFIX}-{rank}"


def meta(context: SelfTestContext, name: str, namespace: str = "", gang: str = "") -> JsonObject:
    """The metadata of an object. gang: whose job it is; empty: of none."""
    where = {"namespace": namespace} if namespace else {}
    return {"name": name, **where, "labels": {**context.labels, **({GANG: gang} if gang else {})}}


def shared(context: SelfTestContext, values: Mapping[Rank, int]) -> tuple[JsonObject, ...]:
    """What all scenarios use: classes of priority. Those with the value 0 preempt no one."""
    return tuple(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": meta(context, class_name(rank)),
            "value": value,
            "preemptionPolicy": "PreemptLowerPriority" if rank == "high" and value else "Never",
            "description": "The self-test of the scheduler; it is removed when that ends.",
        }
        for rank, value in values.items()
    )


def namespace(context: SelfTestContext, scenario: Scenario) -> JsonObject:
    """Where its jobs are."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta(context, scenario.namespace)}


def pod_template(context: SelfTestContext, scenario: Scenario, gang: Gang, scheduler: str = "") -> JsonObject:
    """A pod that holds one unit, sleeps, and ends at once when it is told to."""
    sleep = f"trap 'exit 143' TERM; busybox sleep {gang.seconds or 3600} & wait $!"
    resources = {"requests": {scenario.resource: scenario.unit}, "limits": {scenario.resource: scenario.unit}}
    spec: JsonObject = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 2,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "priorityClassName": class_name(gang.rank),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "sleep",
                "image": context.image,
                "command": ["/bin/busybox", "sh", "-c", sleep],
                "resources": resources,
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    }
    if scheduler:
        spec["schedulerName"] = scheduler
    if scenario.resource == CORES:
        spec["affinity"] = _on(context.machines)
    return {"metadata": {"labels": {**context.labels, GANG: gang.name}}, "spec": spec}


def _on(machines: Sequence[str]) -> JsonObject:
    """Devices are on the machines of the test alone; cores are everywhere."""
    term = {"matchExpressions": [{"key": HOST_LABEL, "operator": "In", "values": list(machines)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def bare_pod(context: SelfTestContext, scenario: Scenario, gang: Gang) -> JsonObject:
    """A pod without a job, as those of the system are to the scheduler of jobs."""
    template = pod_template(context, scenario, gang)
    metadata = meta(context, gang.name, scenario.namespace, gang.name)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def job_spec(context: SelfTestContext, scenario: Scenario, gang: Gang, pods: int) -> JsonObject:
    """The spec of a batch Job that needs all of its pods at once."""
    return {
        "completionMode": "Indexed",
        "parallelism": pods,
        "completions": pods,
        "backoffLimit": 6,
        "template": pod_template(context, scenario, gang),
    }


def amount(scenario: Scenario, units: int) -> str:
    """Units as a quantity of Kubernetes: 2 of "10m" are "20m"."""
    digits = scenario.unit.rstrip("m")
    return f"{int(digits) * units}{scenario.unit[len(digits) :]}"
