"""A job as it is submitted -> its roles, and the virtual cluster and priority that it names. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pai_install.kube.objects import JsonObject, child, number, rows, text, words
from pai_install.schedulers.hived.policies import MARKER, SCHEDULER
from pai_install.schedulers.hived.usage import said_by
from pai_install.schedulers.kueue.policies import PRIORITY_LABEL, QUEUE_LABEL
from pai_install.schedulers.simulate.model import GangRole, NewJob, Term
from pai_install.schedulers.volcano.policies import QUEUE_NOTE
from pai_install.scheduling.job_kinds import VOLCANO_JOB, WITH_PODS, JobKind, PodPart, kind_of
from pai_install.scheduling.model import PRIORITIES
from pai_install.scheduling.usage.amounts import asked_by_pod

_REQUIRED = "kueue.x-k8s.io/podset-required-topology"


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
    kind = kind_of(item)
    if kind is None:
        name = text(item.get("kind")) or "an object without kind"
        known = ", ".join(kind.shown for kind in WITH_PODS)
        raise NoJobError(f"{name} is no job that is known here; these are: {known}")
    metadata = child(item, "metadata")
    roles = tuple(_role(kind, part) for part in kind.parts(item) if part.count > 0)
    if not roles:
        raise NoJobError("it has no pods")
    title = f"Volcano {kind.name}" if kind is VOLCANO_JOB else kind.name
    name = text(metadata.get("name")) or text(metadata.get("generateName")) or kind.name.lower()
    return NewJob(name, roles, namespace=text(metadata.get("namespace")), kind=title, **named_by(item, kind))


def named_by(item: JsonObject, kind: JobKind) -> dict[str, Any]:
    """What the job or its first pod says of its virtual cluster and priority; annotations of HiveD come first."""
    labels, spec = words(child(item, "metadata").get("labels")), child(item, "spec")
    template: JsonObject = next((part.template for part in kind.parts(item)), {})
    policy, pod = child(spec, "runPolicy", "schedulingPolicy"), child(template, "spec")
    said = said_by(template)
    scheduler = text(pod.get("schedulerName"))
    of_hived = scheduler.removeprefix(SCHEDULER) if scheduler.startswith(SCHEDULER) else ""
    queue = text(child(item, *kind.queue[:-1]).get(kind.queue[-1])) if kind.queue else ""
    noted = words(child(template, "metadata").get("annotations")).get(QUEUE_NOTE, "")
    cluster = text(said.get("virtualCluster")) or of_hived or labels.get(QUEUE_LABEL, "") or queue or noted
    value = number(said.get("priority"))
    names = (spec.get("priorityClassName"), policy.get("priorityClass"), pod.get("priorityClassName"))
    class_name = next(filter(None, map(text, names)), "")
    name = (
        next((name for name, it in PRIORITIES.items() if it == value), "") or labels.get(PRIORITY_LABEL) or class_name
    )
    return {"cluster": cluster, "priority": name, "number": value, "pinned": text(said.get("pinnedCellId"))}


def _role(kind: JobKind, part: PodPart) -> GangRole:
    template, spec = part.template, child(part.template, "spec")
    return GangRole(
        part.role or ("pods" if kind.way else "pod"),
        part.count,
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
