"""Admission rules for jobs of users: who owns a job, where it may run, and that a queue counts it to its end. Pure.

A queue counts a job by the pods that the job had when it was admitted, and until it is deleted. So the pods of a job
never change, they end with the job, and no job passes for a part of another job.
"""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.scheduling.admission import Rule, literal
from pai_install.scheduling.job_kinds import ENTRY, ITEM, JOB, KINDS, POD, JobKind
from pai_install.scheduling.job_queue import CLUSTER_LABEL, HIVED_SCHEDULER, QUEUE_LABEL
from pai_install.scheduling.pod_limits import MAX_COMMAND, MAX_GRACE_S, MAX_NOTES
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
    yield from _end()
    yield from _size()
    yield from _placement()
    if kind is POD:
        yield from _pod_deletion()
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
    yield from _finalizers()
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


def no_finalizer() -> Rule:
    """Only controllers add finalizers. An object with one of a user would never end, and nor would its pods."""
    now, before = "object.metadata.finalizers", "oldObject.metadata.finalizers"
    kept = f"oldObject != null && has({before}) && {now}.all(f, f in {before})"
    return Rule(
        f"object == null || !has({now}) || size({now}) == 0 || ({kept})",
        "'users add no finalizers: remove metadata.finalizers'",
    )


def _finalizers() -> Iterator[Rule]:
    yield no_finalizer()
    yield Rule(
        "variables.templates.all(t, !has(t.metadata) || !has(t.metadata.finalizers) || "
        "size(t.metadata.finalizers) == 0)",
        "'pods of users have no finalizers: remove them from the template'",
    )


def _end() -> Iterator[Rule]:
    """Between its deletion and its end a pod holds devices that no queue counts."""
    name = "terminationGracePeriodSeconds"
    yield Rule(
        f"variables.specs.all(s, !has(s.{name}) || s.{name} <= {MAX_GRACE_S})",
        f"'pods of users end within {MAX_GRACE_S} seconds: lower {name}'",
    )


def _pod_deletion() -> Iterator[Rule]:
    """A job replaces a deleted pod at once, while the deleted one still holds its devices."""
    owners, asked = "oldObject.metadata.ownerReferences", "request.options.gracePeriodSeconds"
    yield Rule(
        f"request.operation != 'DELETE' || !has({owners}) || {owners}.all(o, !has(o.controller) || !o.controller)",
        "'this pod is a part of a job: delete the job'",
    )
    yield Rule(
        f"request.operation != 'DELETE' || !has({asked}) || {asked} <= {MAX_GRACE_S}",
        f"'pods of users end within {MAX_GRACE_S} seconds: lower --grace-period'",
    )


def _size() -> Iterator[Rule]:
    """What jobs say is in etcd, which all groups share."""
    words = " + ".join(f"(has(c.{name}) ? c.{name}.map(w, size(w)).sum() : 0)" for name in ("command", "args"))
    environment = "(has(c.env) ? c.env.map(e, size(e.name) + (has(e.value) ? size(e.value) : 0)).sum() : 0)"
    yield Rule(
        f"variables.containers.all(cs, cs.map(c, {words} + {environment}).sum() <= {MAX_COMMAND})",
        f"'commands and environment of a pod have at most {MAX_COMMAND // 1024} KiB: use a ConfigMap or a storage'",
    )
    notes = "{0}.metadata.annotations.map(k, size(k) + size({0}.metadata.annotations[k])).sum() <= {1}"
    yield Rule(
        f"(object == null || !has(object.metadata.annotations) || {notes.format('object', MAX_NOTES)}) && "
        "variables.templates.all(t, !has(t.metadata) || !has(t.metadata.annotations) || "
        f"{notes.format('t', MAX_NOTES)})",
        f"'annotations of a job have at most {MAX_NOTES // 1024} KiB: use a ConfigMap'",
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
