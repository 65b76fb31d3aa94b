"""The self-test's queues and jobs for Volcano. Pure.

Volcano's reclaim may take from any queue what a pod asks for: those of the test ask for the test's own devices, and
where they ask for cores their class of priority takes nothing from anyone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pai_install.schedulers.self_test.driver import SelfTestDriver
from pai_install.schedulers.self_test.model import Gang, Queue, Scenario
from pai_install.schedulers.self_test.objects import JsonObject, SelfTestContext, amount, class_name, meta, pod_template

SCHEDULER = "volcano"
JOBS = ("jobs.batch.volcano.sh",)
WORDS = "podgroups.scheduling.volcano.sh"
# the label of nodes by which queues choose them
GROUP_LABEL = "volcano.sh/nodegroup-name"
KINDS = ("queues.scheduling.volcano.sh",)
CONTROLLERS = ("pai-volcano",)


def queues(context: SelfTestContext, scenario: Scenario) -> tuple[JsonObject, ...]:
    """A queue for each."""
    return tuple(_queue(context, scenario, queue) for queue in scenario.queues)


def node_groups(labels: Iterable[Mapping[str, str]]) -> list[str]:
    """The groups of nodes of machines with those labels."""
    return sorted({one[GROUP_LABEL] for one in labels if GROUP_LABEL in one})


def _name(scenario: Scenario, queue: str) -> str:
    return f"{scenario.title}-{queue}"


def _queue(context: SelfTestContext, scenario: Scenario, queue: Queue) -> JsonObject:
    spec: JsonObject = {
        "reclaimable": True,
        "deserved": {scenario.resource: amount(scenario, queue.units)},
        "capability": {scenario.resource: amount(scenario, queue.most)},
    }
    if context.groups:
        only = {"requiredDuringSchedulingIgnoredDuringExecution": list(context.groups)}
        spec["affinity"] = {"nodeGroupAffinity": only}
    metadata = meta(context, _name(scenario, queue.name))
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": metadata, "spec": spec}


def gang_objects(context: SelfTestContext, scenario: Scenario, gang: Gang) -> tuple[JsonObject, ...]:
    """A Volcano Job that starts whole, and whole again when one of its pods is evicted."""
    tasks = [
        {"name": f"role-{number}", "replicas": pods, "template": pod_template(context, scenario, gang, SCHEDULER)}
        for number, pods in enumerate(gang.tasks)
    ]
    spec = {
        "schedulerName": SCHEDULER,
        "queue": _name(scenario, gang.queue),
        "minAvailable": gang.size,
        "maxRetry": 10,
        "priorityClassName": class_name(gang.rank),
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
        "tasks": tasks,
    }
    metadata = meta(context, gang.name, scenario.namespace, gang.name)
    return ({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec},)


def why(groups: Sequence[Mapping[str, Any]]) -> str:
    """What Volcano says of the gangs that it does not start."""
    conditions = [row for group in groups for row in (group.get("status") or {}).get("conditions") or ()]
    waiting = [row for row in conditions if row.get("type") == "Unschedulable" and row.get("status") == "True"]
    return "; ".join(dict.fromkeys(str(row["message"]) for row in waiting if row.get("message")))


_UNSUPPORTED = {"scheduler-requeue": "Volcano places all pods of a job at once: quota is never given without room"}
DRIVER = SelfTestDriver(
    JOBS,
    gang_objects,
    queues,
    words=WORDS,
    why=why,
    kinds=KINDS,
    namespaces=CONTROLLERS,
    unsupported=_UNSUPPORTED,
    node_groups=node_groups,
)
