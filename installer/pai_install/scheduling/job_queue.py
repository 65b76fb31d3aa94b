"""How jobs name their queue and priority: the marks of every scheduler, for readers of jobs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from yaml import YAMLError

from pai_install.kube.objects import JsonObject, child, number, text, words
from pai_install.scheduling.job_kinds import JobKind
from pai_install.scheduling.model import PRIORITIES
from pai_install.scheduling.usage.amounts import requests_of_pod
from pai_install.system.yaml import load_untrusted_yaml

# the label of jobs and pods that names their virtual cluster, with every scheduler
CLUSTER_LABEL = "pai-install/virtual-cluster"
# Kueue: labels of the job
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
# Volcano: an annotation of pods that are in no Volcano Job
QUEUE_NOTE = "scheduling.volcano.sh/queue-name"
# HiveD: the scheduler that pods name, the resource that they ask for, and the annotation with the rest
HIVED_SCHEDULER = "hivedscheduler-ds-"
HIVED_MARKER = "hivedscheduler.microsoft.com/pod-scheduling-enable"
HIVED_SPEC = "hivedscheduler.microsoft.com/pod-scheduling-spec"
# of the two names of a key the second is OpenPAI's, from before HiveD knew other devices
_CELL_NUMBERS = ("leafCellNumber", "gpuNumber")
_CELL_TYPES = ("leafCellType", "gpuType")


@dataclass(frozen=True, slots=True)
class JobQueue:
    """Queue and priority of a job, empty without one. number: HiveD's priority."""

    cluster: str
    priority: str
    number: int | None = None


def queue_of(item: JsonObject, kind: JobKind) -> JobQueue:
    """Returns the queue of the job or its first pod. HiveD's annotation takes precedence."""
    labels, spec = words(child(item, "metadata").get("labels")), child(item, "spec")
    template: JsonObject = next((part.template for part in kind.parts(item)), {})
    policy, pod = child(spec, "runPolicy", "schedulingPolicy"), child(template, "spec")
    cells = hived_spec(template)
    scheduler = text(pod.get("schedulerName"))
    of_hived = scheduler.removeprefix(HIVED_SCHEDULER) if scheduler.startswith(HIVED_SCHEDULER) else ""
    queue = text(child(item, *kind.queue[:-1]).get(kind.queue[-1])) if kind.queue else ""
    note = words(child(template, "metadata").get("annotations")).get(QUEUE_NOTE, "")
    # A job that was written for another scheduler keeps that one's marks, so all of them are read.
    cluster = text(cells.get("virtualCluster")) or of_hived or labels.get(QUEUE_LABEL, "") or queue or note
    value = number(cells.get("priority"))
    names = (spec.get("priorityClassName"), policy.get("priorityClass"), pod.get("priorityClassName"))
    class_name = next(filter(None, map(text, names)), "")
    of_value = next((name for name, it in PRIORITIES.items() if it == value), "")
    return JobQueue(cluster, of_value or labels.get(PRIORITY_LABEL) or class_name, value)


def hived_spec(pod: JsonObject) -> JsonObject:
    """Returns the content of HiveD's annotation of a pod or template, or {} if it is missing or invalid."""
    try:
        # Any member may write this annotation, so it is parsed with limits.
        found = load_untrusted_yaml(text(child(pod, "metadata", "annotations").get(HIVED_SPEC)))
    except (YAMLError, ValueError):
        return {}
    return found if isinstance(found, Mapping) else {}


def requests_hived(content: JsonObject, way: Sequence[str | int]) -> bool:
    """Returns whether HiveD places the pods of the template at `way`. It places none without devices."""
    template: Any = content
    for key in way:
        template = template[key]
    return HIVED_MARKER in requests_of_pod(child(template, "spec"))


def cells_of(spec: JsonObject) -> int:
    """Leaf cells that HiveD's annotation asks for."""
    return max(0, next((it for key in _CELL_NUMBERS if (it := number(spec.get(key))) is not None), 0))


def cell_type_of(spec: JsonObject) -> str:
    """The leaf cell type that HiveD's annotation asks for, empty for any."""
    return next((it for key in _CELL_TYPES if (it := text(spec.get(key)))), "")


def leaf_types(skus: Iterable[str]) -> dict[str, str]:
    """SKU -> its leaf type: the SKU's name without what divides types in a way down."""
    found: dict[str, str] = {}
    for sku in skus:
        name = re.sub(r"[./]", "-", sku)
        while name in found.values():
            name += "-"
        found[sku] = name
    return found
