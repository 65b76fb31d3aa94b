"""Limits of cores and memory of pods outside queues, with every scheduler. Pure.

A ResourceQuota tells these pods from those of queued jobs by their PriorityClass alone. So admission rules require it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pai_install.kube.objects import JsonObject, child
from pai_install.scheduling import amounts
from pai_install.scheduling.admission import Rule, asks, clusters_at, literal, vendors
from pai_install.scheduling.job_kinds import POD, VOLCANO_JOB, JobKind
from pai_install.scheduling.job_queue import HIVED_SCHEDULER, QUEUE_LABEL
from pai_install.scheduling.model import LOWEST, PRIORITIES, Backend, Scheduling, VirtualCluster
from pai_install.scheduling.usage.amounts import requests_of_pod

Object = dict[str, Any]

# the PriorityClass of pods outside queues, and the ResourceQuota of a group
CLASS = QUOTA = "pai-unqueued"
_VOLCANO = "volcano"


@dataclass(frozen=True, slots=True)
class UnqueuedRules:
    """Where pods outside queues have a limit. devices: prefixes of the names of devices."""

    backend: Backend
    namespaces: tuple[str, ...]
    devices: tuple[str, ...]


def unqueued_rules(scheduling: Scheduling | None, namespaces: Collection[str]) -> UnqueuedRules | None:
    """Returns the rules for namespaces of groups, None for a site without a limit."""
    if scheduling is None or scheduling.unqueued is None:
        return None
    limited = tuple(name for name in dict.fromkeys(namespaces) if is_limited(scheduling, name))
    return UnqueuedRules(scheduling.backend, limited, vendors(amounts.devices_of(scheduling)))


def is_limited(scheduling: Scheduling, namespace: str) -> bool:
    """Whether pods outside queues have a limit in a namespace. The quota of `default` may count all pods already."""
    if scheduling.unqueued is None:
        return False
    clusters = clusters_at(scheduling).get(namespace, ())
    return scheduling.backend != "default" or not counts_cores(scheduling, clusters)


def counts_cores(scheduling: Scheduling, clusters: tuple[VirtualCluster, ...]) -> bool:
    """Whether any of them has a share of an SKU without devices: a quota of cores is one of all pods."""
    return any(
        cluster.share(sku) is not None or amounts.pinned_machines(scheduling, cluster, sku)
        for cluster in clusters
        for sku, supply in scheduling.supply.items()
        if not supply.resource
    )


def unqueued_objects(scheduling: Scheduling | None, namespaces: Collection[str]) -> Iterator[Object]:
    """The PriorityClass, and a ResourceQuota in each namespace of a group. Nothing for a site without a limit."""
    rules = unqueued_rules(scheduling, namespaces)
    limit = scheduling.unqueued if scheduling is not None else None
    if rules is None or limit is None:
        return
    yield {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": CLASS},
        "value": PRIORITIES[LOWEST],
        # The pod takes only room that is idle.
        "preemptionPolicy": "Never",
        "description": "pods of groups outside queues",
    }
    hard = {"requests.cpu": amounts.count(limit.cores), "requests.memory": amounts.memory(limit.memory_bytes)}
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": [CLASS]}
    for namespace in rules.namespaces:
        yield {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": QUOTA, "namespace": namespace},
            "spec": {"hard": hard, "scopeSelector": {"matchExpressions": [scope]}},
        }


def admission_rules(kind: JobKind, rules: UnqueuedRules) -> Iterator[Rule]:
    """Rules for a kind of users' jobs, with the variable `specs`. Templates of pods never change."""
    counted = f"oldObject != null || !(request.namespace in {literal(list(rules.namespaces))}) || variables.specs.all(s"
    outside = _outside(kind, rules)
    named = f"has(s.priorityClassName) && s.priorityClassName == {literal(CLASS)}"
    yield Rule(
        f"{counted}, !({outside}) || ({named}))",
        f"'pods outside queues have a limit: set priorityClassName: {CLASS} in the pod{_queue(kind, rules)}'",
    )
    given = " || ".join(f"(has(c.resources.{which}) && r in c.resources.{which})" for which in ("requests", "limits"))
    containers = "(has(s.containers) ? s.containers : []) + (has(s.initContainers) ? s.initContainers : [])"
    yield Rule(
        f"{counted}, !({outside}) || ({containers}).all(c, ['cpu', 'memory'].all(r, has(c.resources) && ({given}))))",
        "'containers of pods outside queues request cores and memory: set resources.requests.cpu and "
        "resources.requests.memory'",
    )


def _outside(kind: JobKind, rules: UnqueuedRules) -> str:
    """An expression: whether no queue counts the pods of specification `s`."""
    scheduler = "(has(s.schedulerName) ? s.schedulerName : '')"
    if rules.backend == "kueue":
        label = f"object.metadata[?'labels'].orValue({{}})[?{literal(QUEUE_LABEL)}].orValue('')"
        return f"{label} == ''" if "kueue" in kind.queued else "true"
    if rules.backend == "hived":
        return f"!{scheduler}.startsWith({literal(HIVED_SCHEDULER)})"
    if rules.backend == "default":
        return f"!({asks('s', rules.devices)})"
    if kind is VOLCANO_JOB:
        return f"!({scheduler} in ['', {literal(_VOLCANO)}] && object.spec[?'schedulerName'].orValue('') == 'volcano')"
    return f"!({scheduler} in {literal(['', _VOLCANO] if kind.operated else [_VOLCANO])})"


def _queue(kind: JobKind, rules: UnqueuedRules) -> str:
    """The other remedy: how the job gets into a queue."""
    if rules.backend == "kueue" and kind is not POD and kind.queued:
        return f", or the label {QUEUE_LABEL} of the job"
    if rules.backend == "volcano":
        return f", or schedulerName: {_VOLCANO}"
    return ""


def asks_devices(scheduling: Scheduling, content: JsonObject, way: Sequence[str | int]) -> bool:
    """Whether the pods of the template at `way` ask Kubernetes for devices."""
    template: Any = content
    for key in way:
        template = template[key]
    known = vendors(amounts.devices_of(scheduling))
    return any(name.startswith(known) for name in requests_of_pod(child(template, "spec")))
