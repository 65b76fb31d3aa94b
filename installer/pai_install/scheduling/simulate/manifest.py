"""A job as it is submitted -> its roles, and the virtual cluster and priority that it names. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pai_install.cluster.objects import JsonObject, child, number, rows, text, words
from pai_install.scheduling.hived_policies import MARKER, SCHEDULER
from pai_install.scheduling.kueue_policies import PRIORITY_LABEL, QUEUE_LABEL
from pai_install.scheduling.model import PRIORITIES
from pai_install.scheduling.simulate.model import GangRole, NewJob, Term
from pai_install.scheduling.usage.amounts import asked_by_pod
from pai_install.scheduling.usage.hived import said_by

_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
# a role's name, how many pods, their template
Part = tuple[str, int, JsonObject]


class NoJobError(ValueError):
    """The text is no job that can be told about."""


def gang_of(content: str) -> NewJob:
    """The job in a YAML text of one object. Raises NoJobError with a sentence."""
    try:
        documents = [it for it in YAML(typ="safe", pure=True).load_all(content) if it is not None]
    except YAMLError as error:
        raise NoJobError(f"it is no YAML: {str(error).splitlines()[0]}") from error
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        raise NoJobError(f"it holds {len(documents)} objects, and has to be one job")
    return _gang(documents[0])


def _gang(item: JsonObject) -> NewJob:
    group, kind = text(item.get("apiVersion")).partition("/")[0], text(item.get("kind"))
    parts_of = _KINDS.get((group, kind))
    if parts_of is None:
        known = ", ".join(f"{kind} ({group})" for group, kind in _KINDS)
        raise NoJobError(f"{kind or 'an object without kind'} is no job that is known here; these are: {known}")
    metadata = child(item, "metadata")
    roles = tuple(_role(*part) for part in parts_of(item) if part[1] > 0)
    if not roles:
        raise NoJobError("it has no pods")
    named = _named(item, next(iter(parts_of(item)))[2])
    title = f"Volcano {kind}" if parts_of is _volcano else kind
    name = text(metadata.get("name")) or text(metadata.get("generateName")) or kind.lower()
    return NewJob(name, roles, namespace=text(metadata.get("namespace")), kind=title, **named)


def _named(item: JsonObject, template: JsonObject) -> dict[str, Any]:
    """What the job or its first pod says of its virtual cluster and priority; annotations of HiveD come first."""
    labels, spec = words(child(item, "metadata").get("labels")), child(item, "spec")
    pod = child(template, "spec")
    said = said_by(template)
    scheduler = text(pod.get("schedulerName"))
    of_hived = scheduler.removeprefix(SCHEDULER) if scheduler.startswith(SCHEDULER) else ""
    cluster = text(said.get("virtualCluster")) or of_hived or labels.get(QUEUE_LABEL, "") or text(spec.get("queue"))
    value = number(said.get("priority"))
    class_name = text(spec.get("priorityClassName")) or text(pod.get("priorityClassName"))
    name = (
        next((name for name, it in PRIORITIES.items() if it == value), "") or labels.get(PRIORITY_LABEL) or class_name
    )
    return {"cluster": cluster, "priority": name, "number": value, "pinned": text(said.get("pinnedCellId"))}


def _role(name: str, count: int, template: JsonObject) -> GangRole:
    spec = child(template, "spec")
    return GangRole(
        name,
        count,
        {key: amount for key, amount in asked_by_pod(spec).items() if amount > 0 and key != MARKER} | _cells(template),
        _terms(spec),
        tuple(
            (text(it.get("key")), text(it.get("value")), text(it.get("effect"))) for it in rows(spec.get("tolerations"))
        ),
        text(child(template, "metadata", "annotations").get(_REQUIRED)),
    )


# HiveD's marker is a number of no machine; what a pod has is in its annotation
CELLS = "hivedscheduler.microsoft.com/leaf-cells"


def _cells(template: JsonObject) -> dict[str, float]:
    """Devices that a pod of HiveD asks for."""
    said = said_by(template)
    count = next((it for key in ("leafCellNumber", "gpuNumber") if (it := number(said.get(key))) is not None), 0)
    return {CELLS: float(count)} if count > 0 else {}


def _terms(spec: JsonObject) -> tuple[tuple[Term, ...], ...]:
    """The conditions of nodeSelector and of required node affinity; one of the outer ones has to hold."""
    plain = tuple(Term(key, "In", (value,)) for key, value in words(spec.get("nodeSelector")).items())
    required = child(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    choices = [tuple(_expressions(it)) for it in rows(required.get("nodeSelectorTerms"))]
    return tuple((*plain, *choice) for choice in choices or [()]) if plain or choices else ()


def _expressions(term: JsonObject) -> Iterator[Term]:
    for key, kind in (("matchExpressions", ""), ("matchFields", "field ")):
        for row in rows(term.get(key)):
            values = row.get("values")
            told = tuple(map(str, values)) if isinstance(values, list) else ()
            yield Term(kind + text(row.get("key")), text(row.get("operator")), told)


def _count(value: object) -> int:
    found = number(value)
    return 1 if found is None else max(0, found)


def _at_once(job: JsonObject) -> int:
    """Pods of a batch Job that run together."""
    completions = number(job.get("completions"))
    parallel = _count(job.get("parallelism"))
    return parallel if completions is None else min(parallel, completions)


def _pod(item: JsonObject) -> Iterator[Part]:
    yield "pod", 1, item


def _job(item: JsonObject) -> Iterator[Part]:
    spec = child(item, "spec")
    yield "pods", _at_once(spec), child(spec, "template")


def _jobset(item: JsonObject) -> Iterator[Part]:
    for role in rows(child(item, "spec").get("replicatedJobs")):
        job = child(role, "template", "spec")
        yield text(role.get("name")), _count(role.get("replicas")) * _at_once(job), child(job, "template")


def _volcano(item: JsonObject) -> Iterator[Part]:
    for task in rows(child(item, "spec").get("tasks")):
        yield text(task.get("name")) or "default", _count(task.get("replicas")), child(task, "template")


def _kubeflow(key: str) -> Callable[[JsonObject], Iterator[Part]]:
    def parts(item: JsonObject) -> Iterator[Part]:
        for name, replica in child(item, "spec", key).items():
            yield str(name).lower(), _count(child(replica).get("replicas")), child(replica, "template")

    return parts


_KINDS: Mapping[tuple[str, str], Callable[[JsonObject], Iterator[Part]]] = {
    ("jobset.x-k8s.io", "JobSet"): _jobset,
    ("batch", "Job"): _job,
    ("batch.volcano.sh", "Job"): _volcano,
    ("v1", "Pod"): _pod,
    ("kubeflow.org", "TFJob"): _kubeflow("tfReplicaSpecs"),
    ("kubeflow.org", "PyTorchJob"): _kubeflow("pytorchReplicaSpecs"),
}
