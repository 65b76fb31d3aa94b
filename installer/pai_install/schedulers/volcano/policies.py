"""What Volcano leaves open and the API server refuses: queues of others, and devices without a queue. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pai_install.scheduling.admission import (
    RequestKind,
    Rule,
    allowed,
    asks,
    clusters_at,
    in_force,
    literal,
    policy,
    vendors,
)
from pai_install.scheduling.amounts import devices_of
from pai_install.scheduling.model import Scheduling

Object = dict[str, Any]


_POD = RequestKind("", "v1", "pods")
_JOB = RequestKind("batch.volcano.sh", "v1alpha1", "jobs")
# Volcano makes one of every job, and of pods that no job made
_POD_GROUP = RequestKind("scheduling.volcano.sh", "v1beta1", "podgroups")


def policies(scheduling: Scheduling) -> Iterator[Object]:
    """All policies with their bindings; none where no group may submit."""
    places = clusters_at(scheduling)
    if not places:
        return
    queues = (_queues(scheduling, "pai-volcano-jobs", _JOB), _queues(scheduling, "pai-volcano-groups", _POD_GROUP))
    for made in (*queues, _pods(scheduling)):
        yield from in_force(made, places)


def _queues(scheduling: Scheduling, name: str, kind: RequestKind) -> Object:
    """A queue that the namespace's groups may use, and a priority that the queue allows."""
    at = {place: [cluster.name for cluster in clusters] for place, clusters in clusters_at(scheduling).items()}
    spec = "object.spec"
    variables = {
        "queues": f"request.namespace in {literal(at)} ? {literal(at)}[request.namespace] : []",
        "queue": f"has({spec}.queue) && {spec}.queue != '' ? {spec}.queue : 'default'",
        "allowed": literal({cluster.name: list(allowed(cluster)) for cluster in scheduling.clusters}),
        "priority": f"has({spec}.priorityClassName) ? {spec}.priorityClassName : ''",
    }
    rules = (
        Rule(
            "variables.queue in variables.queues",
            "'the queue ' + variables.queue + ' is not this namespace\\'s; it may use ' + variables.queues.join(', ')",
        ),
        Rule(
            "variables.priority == '' || !(variables.queue in variables.allowed) || "
            "variables.priority in variables.allowed[variables.queue]",
            "'jobs of ' + variables.queue + ' may not have the priority ' + variables.priority + ': it allows ' + "
            "variables.allowed[variables.queue].join(', ')",
        ),
    )
    return policy(name, kind, rules, variables)


def _pods(scheduling: Scheduling) -> Object:
    variables = {"asks": asks("object.spec", vendors(devices_of(scheduling)))}
    rules = (
        Rule(
            "!variables.asks || (has(object.spec.schedulerName) && object.spec.schedulerName == 'volcano')",
            "'this asks for devices, so Volcano has to place it: schedulerName: volcano'",
        ),
        Rule(
            "!variables.asks || !has(object.spec.nodeName) || object.spec.nodeName == ''",
            "'a pod with devices may not choose its node by nodeName: no queue would count it'",
        ),
    )
    return policy("pai-volcano-pods", _POD, rules, variables)
