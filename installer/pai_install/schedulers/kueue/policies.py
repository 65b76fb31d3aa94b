"""What Kueue leaves open and the API server refuses: devices without a queue, priorities above the highest. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pai_install.scheduling.admission import (
    RequestKind,
    Rule,
    allowed,
    asks,
    in_force,
    literal,
    namespaces_of,
    policy,
    vendors,
)
from pai_install.scheduling.amounts import devices_of
from pai_install.scheduling.job_kinds import JobKind, queued_at, templates
from pai_install.scheduling.job_queue import PRIORITY_LABEL, QUEUE_LABEL
from pai_install.scheduling.model import PRIORITIES, Scheduling

Object = dict[str, Any]

# who makes pods of jobs that Kueue let start: Kubernetes' controller, of Jobs and those of a JobSet, and Kubeflow's
_POD_MAKERS = (
    "system:serviceaccount:kube-system:job-controller",
    "system:serviceaccount:pai-training-operator:training-operator",
)
# who suspends and resumes a job that stands in a queue
_KUEUE = "system:serviceaccount:pai-kueue:kueue-controller-manager"
# who makes Jobs that are parts of something that stands in a queue
_PART_MAKERS = ("system:serviceaccount:pai-jobset:jobset-controller-manager",)

_CHANGES = ("CREATE", "UPDATE")
_JOB = RequestKind("batch", "v1", "jobs", _CHANGES)
_JOBSET = RequestKind("jobset.x-k8s.io", "v1alpha2", "jobsets", _CHANGES)
_POD = RequestKind("", "v1", "pods")
_WORKLOAD = RequestKind("kueue.x-k8s.io", "v1beta2", "workloads", _CHANGES)


def policies(scheduling: Scheduling) -> Iterator[Object]:
    """All policies with their bindings; none where no group may submit."""
    namespaces = namespaces_of(scheduling)
    if not namespaces:
        return
    operated = (_operated(kind, scheduling) for kind in queued_at("kueue", operator=True) if kind.operated)
    for made in (_jobs(scheduling), _jobsets(scheduling), *operated, _pods(scheduling), _workloads(scheduling)):
        yield from in_force(made, namespaces)


def _jobs(scheduling: Scheduling) -> Object:
    template = "object.spec.template.spec"
    variables = {
        "part": f"request.userInfo.username in {literal(list(_PART_MAKERS))}",
        "asks": asks(template, vendors(devices_of(scheduling))),
        "named": f"has({template}.priorityClassName) && {template}.priorityClassName != ''",
        **_labels(scheduling),
    }
    return policy("pai-queued-jobs", _JOB, (*_rules("variables.part || "), _suspension("spec")), variables)


def _jobsets(scheduling: Scheduling) -> Object:
    parts, template = "object.spec.replicatedJobs", "j.template.spec.template.spec"
    asking = asks(template, vendors(devices_of(scheduling)))
    variables = {
        "asks": f"has({parts}) && {parts}.exists(j, {asking})",
        "named": f"has({parts}) && {parts}.exists(j, has({template}.priorityClassName))",
        **_labels(scheduling),
    }
    return policy("pai-queued-jobsets", _JOBSET, (*_rules(""), _suspension("spec")), variables)


def _operated(kind: JobKind, scheduling: Scheduling) -> Object:
    """Those of the training-operator, whether the site has it or not: no one can make any where it is not."""
    variables = {
        "templates": templates(kind),
        "asks": f"variables.templates.exists(t, {asks('t.spec', vendors(devices_of(scheduling)))})",
        "named": "variables.templates.exists(t, has(t.spec.priorityClassName))",
        **_labels(scheduling),
    }
    request_kind = RequestKind(kind.group, kind.version, kind.resource, _CHANGES)
    return policy(f"pai-queued-{kind.resource}", request_kind, (*_rules(""), _suspension("spec.runPolicy")), variables)


def _labels(scheduling: Scheduling) -> Mapping[str, str]:
    """Which queue and priority something names, and what that queue allows.

    joined: it stands in a queue, or did not before there were any; out of one there is no way but the job's end.
    """
    classes = {cluster.name: list(allowed(cluster)) for cluster in scheduling.clusters}
    return {
        "labels": "has(object.metadata.labels) ? object.metadata.labels : {}",
        "queue": f"{literal(QUEUE_LABEL)} in variables.labels ? variables.labels[{literal(QUEUE_LABEL)}] : ''",
        "priority": f"{literal(PRIORITY_LABEL)} in variables.labels ? variables.labels[{literal(PRIORITY_LABEL)}] : ''",
        "allowed": literal(classes),
        "before": "oldObject != null && has(oldObject.metadata.labels) ? oldObject.metadata.labels : {}",
        "joined": f"variables.queue != '' || (oldObject != null && !({literal(QUEUE_LABEL)} in variables.before))",
        # what stands in the queue since before its rules changed ends as it began
        "unchanged": "oldObject != null && variables.labels == variables.before",
    }


def _rules(unless: str) -> tuple[Rule, ...]:
    known = "!(variables.queue in variables.allowed)"
    return (
        Rule(
            f"{unless}!variables.asks || variables.joined",
            "'this asks for devices, so it has to name a virtual cluster: label "
            f"{QUEUE_LABEL}, one of ' + variables.allowed.map(name, name).join(', ')",
        ),
        Rule(
            f"{unless}!variables.asks || !variables.named || oldObject != null",
            f"'the priority of a job with devices is its label {PRIORITY_LABEL}, not a priorityClassName of its pods'",
        ),
        Rule(
            f"{unless}variables.priority == '' || variables.unchanged || {known} || "
            "variables.priority in variables.allowed[variables.queue]",
            "'jobs of ' + variables.queue + ' may not have the priority ' + variables.priority + ': it allows ' + "
            "variables.allowed[variables.queue].join(', ')",
        ),
    )


def _suspension(holder: str) -> Rule:
    """Pods of a job that a member resumes run until Kueue suspends it again, and no queue counts them meanwhile.

    Kueue resumes a job that a member suspends, and its new pods run beside those that still end. holder: of the field
    `suspend`.
    """

    def suspended(which: str) -> str:
        parts = [f"{which}.{holder}", f"{which}.{holder}.suspend"]
        return " && ".join([*(f"has({part})" for part in parts), parts[-1]])

    return Rule(
        f"oldObject == null || ({suspended('oldObject')}) == ({suspended('object')}) || "
        f"!({literal(QUEUE_LABEL)} in variables.before || variables.queue != '') || "
        f"request.userInfo.username in {literal([_KUEUE, *_PART_MAKERS])}",
        "'Kueue alone suspends and resumes a job that names a virtual cluster'",
    )


def _pods(scheduling: Scheduling) -> Object:
    """Whatever made it, a pod with devices that no queue let start is refused; so are those that choose their node."""
    variables = {"asks": asks("object.spec", vendors(devices_of(scheduling)))}
    made = Rule(
        f"!variables.asks || request.userInfo.username in {literal(list(_POD_MAKERS))}",
        "'pods with devices are made by jobs that name a virtual cluster, of a kind that is queued, by nothing else'",
    )
    return policy("pai-queued-pods", _POD, (made,), variables)


def _workloads(scheduling: Scheduling) -> Object:
    """What Kueue makes of a job, whatever kind that is: the priority as a number."""
    highest = {cluster.name: PRIORITIES[cluster.highest] for cluster in scheduling.clusters}
    spec = "object.spec"
    variables = {
        "highest": literal(highest),
        "queue": f"has({spec}.queueName) ? {spec}.queueName : ''",
        "priority": f"has({spec}.priority) ? {spec}.priority : 0",
        "before": "oldObject != null && has(oldObject.spec.priority) ? oldObject.spec.priority : 0",
        "unchanged": "oldObject != null && variables.before == variables.priority",
    }
    rule = Rule(
        "variables.unchanged || !(variables.queue in variables.highest) || "
        "variables.priority <= variables.highest[variables.queue]",
        "'the priority ' + string(variables.priority) + ' is above the highest of ' + variables.queue + ', ' + "
        "string(variables.highest[variables.queue])",
    )
    return policy("pai-workload-priorities", _WORKLOAD, (rule,), variables)
