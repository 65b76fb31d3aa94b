"""Admission rules for jobs of users: who owns a job, where it may run, and that a queue counts it to its end. Pure.

A queue counts a job by the pods that the job had when it was admitted, and until it is deleted. So the pods of a job
never change, they end with the job, and no job passes for a part of another job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from pai_install.scheduling import device_shares
from pai_install.scheduling.admission import Rule, literal
from pai_install.scheduling.device_shares import ShareRules
from pai_install.scheduling.job_kinds import JOB, KINDS, POD, JobKind, pods_of
from pai_install.scheduling.job_queue import CLUSTER_LABEL, HIVED_SCHEDULER, QUEUE_LABEL, QUEUE_NOTE
from pai_install.scheduling.model import LOWEST
from pai_install.scheduling.pod_limits import (
    MAX_COMMAND,
    MAX_GRACE_S,
    MAX_JOB,
    MAX_MANAGERS,
    MAX_NOTES,
    MAX_POD,
    MAX_PODS,
)
from pai_install.scheduling.unqueued import CLASS, UnqueuedRules, admission_rules
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
_OF_JOB = [f"{prefix}{name}" for prefix in ("", "batch.kubernetes.io/") for name in ("controller-uid", "job-name")]
_ADOPTION = (*_OF_JOB, "training.kubeflow.org/replica-type", "jobset.sigs.k8s.io/job-key", "volcano.sh/task-spec")
# annotations by which Volcano puts a pod into a PodGroup
_GANGS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
# the label or annotation by which Volcano leaves a pod out when it takes back what is lent
_KEEPS = "volcano.sh/preemptable"
# the label by which Kueue gives a job a workload that is already there
_WORKLOAD = "kueue.x-k8s.io/prebuilt-workload-name"
# of the specification of a job, or of runPolicy in it: they change no pod and no queue
_CHANGEABLE = ["suspend", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"]


def job_rules(
    kind: JobKind,
    scheduler: SchedulerType | None,
    clusters: Mapping[str, Iterable[str]] | None,
    priorities: Mapping[str, Iterable[str]] | None,
    unqueued: UnqueuedRules | None,
    shares: ShareRules | None = None,
) -> Iterator[Rule]:
    """The rules of a kind. They use the variables `specs`, `templates`, and `containers` of the policy."""
    if unqueued is not None:
        yield from admission_rules(kind, unqueued)
    if shares is not None:
        yield from device_shares.admission_rules(shares)
    yield from _priority(kind)
    if priorities is not None:
        yield _priority_of_the_group(scheduler, priorities, () if unqueued is None else unqueued.namespaces)
    yield _taken_back()
    yield from _ownership(kind)
    yield _deletion(kind)
    yield _parts(kind)
    yield from _end()
    yield from _size()
    yield from _placement()
    if kind is POD:
        yield from _pod_deletion()
    if kind is not POD:
        yield _number(kind)
        yield from _frozen()
    if kind.operated:
        yield _no_growth()
    if clusters is not None:
        yield _own_cluster(clusters)
    if scheduler in ("kueue", "volcano", "hived"):
        yield _virtual_cluster(kind, scheduler)


def _priority(kind: JobKind) -> Iterator[Rule]:
    yield Rule(
        "variables.specs.all(s, !has(s.priorityClassName) || !s.priorityClassName.startsWith('system-'))",
        "'pods of users have no priority of the system: remove priorityClassName'",
    )
    if kind is POD:
        yield Rule(
            # The API server fills in the number of a class before policies see a pod.
            f"variables.specs.all(s, !has(s.priority) || s.priority < {_HIGHEST_PRIORITY})",
            "'pods of users have no priority of the system'",
        )


def _priority_of_the_group(
    scheduler: SchedulerType | None, priorities: Mapping[str, Iterable[str]], limited: Collection[str]
) -> Rule:
    """No queue counts pods without devices. A class of the site would let them take the place of all jobs.

    With HiveD they need a class: the one of pods without any is above those of all jobs. Templates never change.
    limited: namespaces with a class of pods outside queues.
    """
    found = dict.fromkeys(limited, (LOWEST,)) | dict(priorities)
    known = literal({name: [*names, *([CLASS] if name in limited else [])] for name, names in found.items()})
    names = f"{known}[?request.namespace].orValue({literal([LOWEST])})"
    named = "has(s.priorityClassName) && s.priorityClassName != ''"
    missing = "false" if scheduler == "hived" else f"!({named})"
    return Rule(
        f"oldObject != null || variables.specs.all(s, {missing} || ({named} && s.priorityClassName in {names}))",
        f"'pods of users have a priority class of their group: ' + {names}.join(', ')",
    )


def _taken_back() -> Rule:
    """Volcano takes back no pod that says otherwise. So a borrower would keep devices from their owner."""
    keeps = " || ".join(
        f"t.metadata[?'{name}'].orValue({{}})[?{literal(_KEEPS)}].orValue('true') != 'true'"
        for name in ("labels", "annotations")
    )
    return Rule(
        f"variables.templates.all(t, !has(t.metadata) || !({keeps}))",
        f"'pods of users return what they borrow: remove {_KEEPS}'",
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
    yield from _adoption(kind)
    if kind is JOB:
        selector = "object.spec.manualSelector"
        yield Rule(
            f"object == null || !has({selector}) || !{selector}",
            "'jobs of users have no manualSelector: it would adopt the pods of others'",
        )


def _adoption(kind: JobKind) -> Iterator[Rule]:
    """Controllers, Services, and schedulers know the pods of a job by these marks."""
    # A controller counts every pod with its labels, whoever created the pod.
    known = [*_ADOPTION, *(it.marks.job for it in KINDS if it.marks is not None)]
    labels, notes = "t.metadata.labels", "t.metadata.annotations"
    # the API server writes those of a Job before policies see it
    own = f"l in {literal(_OF_JOB)} && {labels}[l] in [object.metadata.name, object.metadata.?uid.orValue('')]"
    allowed = f" || ({own})" if kind is JOB else ""
    yield Rule(
        f"variables.templates.all(t, !has(t.metadata) || !has({labels}) || "
        f"{literal(known)}.all(l, !(l in {labels}){allowed}))",
        "'pods of users have no label of another job, or its controller or Services would take them for its own'",
    )
    yield Rule(
        f"variables.templates.all(t, !has(t.metadata) || !has({notes}) || "
        f"!{literal(list(_GANGS))}.exists(n, n in {notes}))",
        "'pods of users name no gang: it may be the gang of another job'",
    )
    held = "object.metadata.labels"
    yield Rule(
        f"object == null || !has({held}) || !({literal(_WORKLOAD)} in {held})",
        "'jobs of users name no workload: it may be the workload of another job'",
    )


def no_finalizer() -> Rule:
    """Only controllers add finalizers. An object with one of a user would never end, and nor would its pods."""
    now, before = "object.metadata.finalizers", "oldObject.metadata.finalizers"
    # Finalizers of controllers stay. An update of another field repeats them.
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


def _parts(kind: JobKind) -> Rule:
    """A job replaces a deleted or suspended part at once, while the pods of that still hold their devices."""
    owners = "oldObject.metadata.ownerReferences"
    operation = "request.operation != 'DELETE'" if kind is POD else "request.operation == 'CREATE'"
    return Rule(
        f"{operation} || !has({owners}) || {owners}.all(o, !has(o.controller) || !o.controller)",
        f"'this {kind.name} is a part of a job: delete the job'",
    )


def _pod_deletion() -> Iterator[Rule]:
    grace = "request.options.gracePeriodSeconds"
    yield Rule(
        f"request.operation != 'DELETE' || !has({grace}) || {grace} <= {MAX_GRACE_S}",
        f"'pods of users end within {MAX_GRACE_S} seconds: lower --grace-period'",
    )
    # Without its object no quota counts the pod. The kubelet still grants it the grace period of its specification.
    placed = "has(oldObject.spec.nodeName) && oldObject.spec.nodeName != ''"
    ended = "has(oldObject.status.phase) && oldObject.status.phase in ['Succeeded', 'Failed']"
    yield Rule(
        f"request.operation != 'DELETE' || !has({grace}) || {grace} > 0 || !({placed}) || ({ended})",
        "'pods of users hold their devices until they end: remove --force'",
    )


def _size() -> Iterator[Rule]:
    """What jobs say is in etcd, which all groups share."""
    words = " + ".join(f"(has(c.{name}) ? c.{name}.map(w, size(w)).sum() : 0)" for name in ("command", "args"))
    # The environment counts as well, as a script may hide in a variable.
    environment = "(has(c.env) ? c.env.map(e, size(e.name) + (has(e.value) ? size(e.value) : 0)).sum() : 0)"
    yield Rule(
        f"variables.containers.all(cs, cs.map(c, {words} + {environment}).sum() <= {MAX_COMMAND})",
        f"'commands and environment of a pod have at most {MAX_COMMAND // 1024} KiB: use a ConfigMap or a storage'",
    )
    yield from small_metadata()
    yield Rule(
        f"variables.templates.all(t, !has(t.metadata) || {_notes('t')} <= {MAX_NOTES})",
        f"'labels and annotations of a pod have at most {MAX_NOTES // 1024} KiB: use a ConfigMap'",
    )
    yield Rule(
        f"variables.templates.all(t, size('%s'.format([t])) <= {MAX_POD})",
        f"'a pod has at most {MAX_POD // 1024} KiB: use a ConfigMap or a storage'",
    )
    yield Rule(
        f"object == null || !has(object.spec) || size('%s'.format([object.spec])) <= {MAX_JOB}",
        f"'a job has at most {MAX_JOB // 1024} KiB: divide it'",
    )


def small_metadata() -> Iterator[Rule]:
    """Yields the rules that labels, annotations, owners, and managers of an object are small."""
    yield Rule(
        f"object == null || {_notes('object')} <= {MAX_NOTES}",
        f"'labels and annotations of an object have at most {MAX_NOTES // 1024} KiB: use a ConfigMap'",
    )
    # the API server keeps a list of fields for each name of a client
    managers = "object.metadata.managedFields"
    yield Rule(
        f"object == null || !has({managers}) || size({managers}) <= {MAX_MANAGERS}",
        f"'an object has at most {MAX_MANAGERS} field managers: use one fieldManager'",
    )


def _notes(which: str) -> str:
    """An expression: the size of what metadata says, as text."""
    names = ("labels", "annotations", "ownerReferences")
    parts = (f"(has({which}.metadata.{name}) ? size('%s'.format([{which}.metadata.{name}])) : 0)" for name in names)
    return f"({' + '.join(parts)})"


def _deletion(kind: JobKind) -> Rule:
    """Pods that outlive their job would use devices that no queue counts. A batch Job orphans them by default."""
    given = "has(request.options.propagationPolicy)"
    orphans = (
        f"(({given} && request.options.propagationPolicy == 'Orphan') || "
        "(has(request.options.orphanDependents) && request.options.orphanDependents))"
    )
    # kubectl asks for Background. Only a bare request to batch/v1 gets the old default of the API.
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
    # The API server adds these tolerations to each pod, so a rule against them would refuse all pods.
    conditions = literal([f"{_OF_NODE}{name}" for name in _CONDITIONS])
    yield Rule(
        "variables.specs.all(s, !has(s.tolerations) || s.tolerations.all(t, has(t.key) && t.key != '' && "
        f"!(t.key in {literal(list(_CONTROL_PLANE))}) && "
        f"(!t.key.startsWith({literal(_OF_NODE)}) || t.key in {conditions})))",
        "'pods of users tolerate neither control planes nor cordoned nodes: name the key of a taint of yours'",
    )
    handlers = [*_PROBES, *_HOOKS]
    # The kubelet of a node sends the probe, from an address that packet filters let through.
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


def _frozen() -> Iterator[Rule]:
    """A queue counts a job as it was when it was admitted: its pods, their number, its queue, and its priority."""
    now, before, runs = "object.spec", "oldObject.spec", "{}.spec[?'runPolicy'].orValue({{}})"
    # Kubeflow's jobs have these fields below runPolicy.
    outer = _same(now, before, [*_CHANGEABLE, "runPolicy"])
    inner = _same(runs.format("object"), runs.format("oldObject"), _CHANGEABLE)
    yield Rule(
        f"oldObject == null || object == null || !has({now}) || !has({before}) || ({outer} && {inner})",
        f"'only {', '.join(_CHANGEABLE)} of a job change: delete the job, and submit it again'",
    )
    marks = literal([QUEUE_LABEL, CLUSTER_LABEL])
    label = "{0}.metadata[?'labels'].orValue({{}})[?l].orValue('')"
    yield Rule(
        f"oldObject == null || object == null || {marks}.all(l, "
        f"{label.format('object')} == {label.format('oldObject')})",
        f"'a job stays in its queue: the labels {QUEUE_LABEL} and {CLUSTER_LABEL} do not change'",
    )


def _number(kind: JobKind) -> Rule:
    """Controllers and schedulers make a list of all pods of a job, and a long one ends them for all."""
    return Rule(
        f"object == null || !has(object.spec) || {pods_of(kind)} <= {MAX_PODS}",
        f"'a job has at most {MAX_PODS} pods'",
    )


def _no_growth() -> Rule:
    """The training-operator would make a HorizontalPodAutoscaler, which adds pods that no queue admitted."""
    metrics = "object.spec[?'elasticPolicy'].orValue({})[?'metrics'].orValue([])"
    return Rule(
        f"object == null || !has(object.spec) || size({metrics}) == 0",
        "'jobs of users do not grow by themselves: remove elasticPolicy.metrics'",
    )


def _same(now: str, before: str, but: list[str]) -> str:
    """Whether two mappings have equal values, apart from some keys."""
    kept = f"k in {literal(but)} || (k in {before} && {now}[k] == {before}[k])"
    return f"{now}.all(k, {kept}) && {before}.all(k, k in {literal(but)} || k in {now})"


def _own_cluster(clusters: Mapping[str, Iterable[str]]) -> Rule:
    """The label decides which limits apply, so it names a virtual cluster of the group."""
    labels = "object.metadata.labels"
    known = literal({namespace: list(names) for namespace, names in clusters.items()})
    return Rule(
        f"object == null || !has({labels}) || !({literal(CLUSTER_LABEL)} in {labels}) || "
        f"{labels}[{literal(CLUSTER_LABEL)}] in {known}[?request.namespace].orValue([])",
        f"'the label {CLUSTER_LABEL} names a virtual cluster of your group'",
    )


def _virtual_cluster(kind: JobKind, scheduler: SchedulerType) -> Rule:
    """The limits of idle jobs go by the label, so the label names the queue."""
    labels = "object.metadata.labels"
    named = f"{labels}[?{literal(CLUSTER_LABEL)}].orValue('')"
    if scheduler == "kueue":
        queue = f"{labels}[?{literal(QUEUE_LABEL)}].orValue({named}) == {named}"
    elif scheduler == "volcano":
        note = f"t.metadata[?'annotations'].orValue({{}})[?{literal(QUEUE_NOTE)}].orValue({named})"
        queue = f"variables.templates.all(t, !has(t.metadata) || {note} == {named})"
        if kind.queue:
            path = ".".join(kind.queue)
            queue = f"({queue}) && (!{_has('object', path)} || object.{path} == {named})"
    else:
        queue = (
            f"variables.specs.all(s, !has(s.schedulerName) || !s.schedulerName.startsWith({literal(HIVED_SCHEDULER)}) "
            f"|| s.schedulerName == {literal(HIVED_SCHEDULER)} + {named})"
        )
    return Rule(
        f"object == null || !has({labels}) || !({literal(CLUSTER_LABEL)} in {labels}) || ({queue})",
        f"'the label {CLUSTER_LABEL} names the queue of the job'",
    )
