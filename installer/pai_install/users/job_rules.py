"""Admission rules for jobs of users: who owns a job, where it may run, and that a queue counts it to its end. Pure.

A queue counts a job by the pods that the job had when it was admitted, and until it is deleted. So the pods of a job
never change, they end with the job, and no job passes for a part of another job.
"""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.scheduling.admission import Rule, literal
from pai_install.scheduling.job_kinds import ENTRY, ITEM, JOB, KINDS, POD, JobKind
from pai_install.scheduling.job_queue import CLUSTER_LABEL, HIVED_SCHEDULER, QUEUE_LABEL
from pai_install.site.services.virtual_clusters import SchedulerType

# Kubernetes' own classes begin above this number: their pods preempt everything
_HIGHEST_PRIORITY = 1_000_000_000
_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
# taints of a node's condition that Kubernetes lets pods tolerate by default
_CONDITIONS = ("not-ready", "unreachable", "memory-pressure")
_OF_NODE = "node.kubernetes.io/"
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("lifecycle.postStart", "lifecycle.preStop")
# labels by which controllers know the pods of their jobs
_ADOPTION = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid")


def job_rules(kind: JobKind, scheduler: SchedulerType | None) -> Iterator[Rule]:
    """The rules of a kind. They use the variables `specs` and `containers` of the policy."""
    yield from _priority(kind)
    yield from _ownership(kind)
    yield _deletion(kind)
    yield from _placement()
    if kind is not POD:
        yield _frozen(kind)
    if scheduler in ("kueue", "volcano", "hived"):
        yield _virtual_cluster(kind, scheduler)


def _priority(kind: JobKind) -> Iterator[Rule]:
    yield Rule(
        "variables.specs.all(s, !has(s.priorityClassName) || !s.priorityClassName.startsWith('system-'))",
        "'pods of users have no priority of the system: remove priorityClassName'",
    )
    if kind is POD:
        yield Rule(
            f"variables.specs.all(s, !has(s.priority) || s.priority < {_HIGHEST_PRIORITY})",
            "'pods of users have no priority of the system'",
        )


def _ownership(kind: JobKind) -> Iterator[Rule]:
    """Schedulers, lists, and records leave out a part of another job. So only controllers say that of a job."""
    references = "{}.metadata.ownerReferences"
    now, before = references.format("object"), references.format("oldObject")
    same = f"(oldObject != null && has({before}) && {before} == {now})"
    yield Rule(
        f"object == null || !has({now}) || {same} || {now}.all(o, !has(o.controller) || !o.controller)",
        "'no controller owns a job of a user: remove the owner reference'",
    )
    finalizers = "object.metadata.finalizers"
    yield Rule(
        f"object == null || !has({finalizers}) || !('orphan' in {finalizers})",
        "'pods end with their job: remove the finalizer orphan'",
    )
    labels = "object.metadata.labels"
    if kind is POD:
        known = (*_ADOPTION, *(it.marks.job for it in KINDS if it.marks is not None))
        yield Rule(
            f"object == null || !has({labels}) || !{literal(list(known))}.exists(l, l in {labels})",
            "'a pod of its own has no label of a job, or the controller of that job would adopt it'",
        )
    if kind is JOB:
        selector = "object.spec.manualSelector"
        yield Rule(
            f"object == null || !has({selector}) || !{selector}",
            "'jobs of users have no manualSelector: it would adopt the pods of others'",
        )


def _deletion(kind: JobKind) -> Rule:
    """Pods that outlive their job would use devices that no queue counts. A batch Job orphans them by default."""
    given = "has(request.options.propagationPolicy)"
    orphans = (
        f"(({given} && request.options.propagationPolicy == 'Orphan') || "
        "(has(request.options.orphanDependents) && request.options.orphanDependents))"
    )
    ends = f"({given} && !{orphans})" if kind is JOB else f"!{orphans}"
    return Rule(
        f"request.operation != 'DELETE' || {ends}",
        "'pods end with their job: delete it with propagationPolicy Background or Foreground'",
    )


def _placement() -> Iterator[Rule]:
    yield Rule(
        "variables.specs.all(s, !has(s.nodeName) || s.nodeName == '')",
        "'the scheduler places pods of users: remove nodeName'",
    )
    conditions = literal([f"{_OF_NODE}{name}" for name in _CONDITIONS])
    yield Rule(
        "variables.specs.all(s, !has(s.tolerations) || s.tolerations.all(t, has(t.key) && t.key != '' && "
        f"!(t.key in {literal(list(_CONTROL_PLANE))}) && "
        f"(!t.key.startsWith({literal(_OF_NODE)}) || t.key in {conditions})))",
        "'pods of users tolerate neither control planes nor cordoned nodes: name the key of a taint of yours'",
    )
    handlers = [*_PROBES, *_HOOKS]
    local = " && ".join(
        f"(!{_has('c', f'{handler}.{action}.host')} || c.{handler}.{action}.host == '')"
        for handler in handlers
        for action in ("httpGet", "tcpSocket")
    )
    yield Rule(
        f"variables.containers.all(cs, cs.all(c, {local}))",
        "'probes of users ask their own pod: remove host'",
    )


def _has(root: str, path: str) -> str:
    """Whether each step of the path exists."""
    steps = path.split(".")
    found = (".".join((root, *steps[: length + 1])) for length in range(len(steps)))
    return f"({' && '.join(f'has({step})' for step in found)})"


def _frozen(kind: JobKind) -> Rule:
    """Returns the rule that the pods of a queued job, and their number, do not change."""
    marks = [kind.way.index(mark) for mark in (ITEM, ENTRY) if mark in kind.way]
    path = ".".join(kind.way[: marks[0]] if marks else kind.way)
    both = f"{_has('object', path)} && {_has('oldObject', path)} && object.{path} == oldObject.{path}"
    neither = f"!{_has('object', path)} && !{_has('oldObject', path)}"
    return Rule(
        f"oldObject == null || object == null || ({both}) || ({neither})",
        "'the pods of a job do not change: delete the job, and submit it again'",
    )


def _virtual_cluster(kind: JobKind, scheduler: SchedulerType) -> Rule:
    """The limits of idle jobs go by the label, so the label names the queue."""
    labels = "object.metadata.labels"
    named = f"{labels}[?{literal(CLUSTER_LABEL)}].orValue('')"
    if scheduler == "kueue":
        queue = f"{labels}[?{literal(QUEUE_LABEL)}].orValue({named}) == {named}"
    elif scheduler == "volcano" and kind.queue:
        path = ".".join(kind.queue)
        queue = f"!{_has('object', path)} || object.{path} == {named}"
    else:
        queue = (
            f"variables.specs.all(s, !has(s.schedulerName) || !s.schedulerName.startsWith({literal(HIVED_SCHEDULER)}) "
            f"|| s.schedulerName == {literal(HIVED_SCHEDULER)} + {named})"
        )
    return Rule(
        f"object == null || !has({labels}) || !({literal(CLUSTER_LABEL)} in {labels}) || ({queue})",
        f"'the label {CLUSTER_LABEL} names the queue of the job'",
    )
