"""The kinds of objects that are jobs: where each has its pods, who queues it, how its pods are known. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pai_install.kube.objects import JsonObject, child, number, rows, text
from pai_install.scheduling.model import BACKENDS, Backend

# on the way to a template: each item of a list, each entry of a mapping
ITEM, ENTRY = "[]", "{}"
# what says beside a template how many there are of it
COUNTS = ("replicas", "parallelism")
OPERATOR = "training-operator"


@dataclass(frozen=True, slots=True)
class PodMarks:
    """Labels by which the pods of a job are known. numbers: of its number, and before it that of the Job it is in."""

    job: str
    role: str
    numbers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodPart:
    """Pods that are alike. count: at once. total: one after the other, too. each: of `total` numbered together."""

    role: str
    count: int
    total: int
    each: int
    template: JsonObject


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of jobs.

    way: keys to its pod templates, empty if it is a pod. queue: keys to its queue, besides Kueue's label. queued:
    schedulers that queue it. brought: schedulers that install it, empty: any site may have it. marks: None if it is a
    pod.
    """

    group: str
    version: str
    name: str
    resource: str
    way: tuple[str, ...]
    marks: PodMarks | None
    queued: tuple[Backend, ...]
    queue: tuple[str, ...] = ()
    brought: tuple[Backend, ...] = ()

    @property
    def api(self) -> str:
        """apiVersion as objects have it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def shown(self) -> str:
        """As messages call it."""
        return f"{self.name} ({self.api})"

    @property
    def full_name(self) -> str:
        """As kubectl names it."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    @property
    def operated(self) -> bool:
        """Whether the training-operator runs it."""
        return self.group == _KUBEFLOW

    def parts(self, item: JsonObject) -> Iterator[PodPart]:
        """The pods that an object of the kind asks for, by their roles."""
        yield from _below(item, self.way, PodPart("", 1, 1, 1, {}))


_KUBEFLOW = "kubeflow.org"


def _kubeflow(name: str, roles: str, queued: tuple[Backend, ...] = ("kueue", "volcano", "default")) -> JobKind:
    marks = PodMarks(
        "training.kubeflow.org/job-name", "training.kubeflow.org/replica-type", ("training.kubeflow.org/replica-index",)
    )
    return JobKind(
        _KUBEFLOW,
        "v1",
        name,
        f"{name.lower()}s",
        ("spec", roles, ENTRY, "template"),
        marks,
        queued,
        ("spec", "runPolicy", "schedulingPolicy", "queue"),
    )


POD = JobKind("", "v1", "Pod", "pods", (), None, ("volcano", "default", "hived"))
JOB = JobKind(
    "batch",
    "v1",
    "Job",
    "jobs",
    ("spec", "template"),
    PodMarks("batch.kubernetes.io/job-name", "", ("batch.kubernetes.io/job-completion-index",)),
    BACKENDS,
)
JOBSET = JobKind(
    "jobset.x-k8s.io",
    "v1alpha2",
    "JobSet",
    "jobsets",
    ("spec", "replicatedJobs", ITEM, "template", "spec", "template"),
    PodMarks(
        "jobset.sigs.k8s.io/jobset-name",
        "jobset.sigs.k8s.io/replicatedjob-name",
        ("jobset.sigs.k8s.io/job-index", "batch.kubernetes.io/job-completion-index"),
    ),
    ("kueue", "default", "hived"),
    brought=("kueue", "default", "hived"),
)
VOLCANO_JOB = JobKind(
    "batch.volcano.sh",
    "v1alpha1",
    "Job",
    "jobs",
    ("spec", "tasks", ITEM, "template"),
    PodMarks("volcano.sh/job-name", "volcano.sh/task-spec", ("volcano.sh/task-index",)),
    ("volcano",),
    ("spec", "queue"),
    ("volcano",),
)
KINDS: tuple[JobKind, ...] = (
    JOB,
    _kubeflow("TFJob", "tfReplicaSpecs"),
    _kubeflow("PyTorchJob", "pytorchReplicaSpecs"),
    _kubeflow("XGBoostJob", "xgbReplicaSpecs"),
    _kubeflow("PaddleJob", "paddleReplicaSpecs"),
    _kubeflow("JAXJob", "jaxReplicaSpecs"),
    # what would run it runs commands in the pods of all, so no site has it by us
    _kubeflow("MPIJob", "mpiReplicaSpecs", ()),
    JOBSET,
    VOLCANO_JOB,
)
# and pods that no job made
WITH_PODS = (*KINDS, POD)
_BY_NAME: Mapping[tuple[str, str], JobKind] = {(kind.group, kind.name): kind for kind in WITH_PODS}


def kind_of(item: JsonObject) -> JobKind | None:
    """Returns the kind of an object of any version, or None if it is no job."""
    api = text(item.get("apiVersion"))
    group = api.rpartition("/")[0]
    return _BY_NAME.get((group, text(item.get("kind"))))


def queued_at(backend: Backend, *, operator: bool) -> tuple[JobKind, ...]:
    """Returns the kinds that a scheduler queues, without bare pods. operator: the training-operator is installed."""
    return tuple(kind for kind in KINDS if backend in kind.queued and (operator or not kind.operated))


def templates(kind: JobKind) -> str:
    """An expression of CEL: the list of a job's pod templates. A pod that no job made describes itself."""
    for mark, way in ((mark, kind.way.index(mark)) for mark in (ITEM, ENTRY) if mark in kind.way):
        roles = ".".join(("object", *kind.way[:way]))
        each = "r" if mark == ITEM else f"{roles}[r]"
        return f"has({roles}) ? {roles}.map(r, {_has(each, kind.way[way + 1 :])}) : []"
    return f"[{'.'.join(('object', *kind.way))}]"


def pods_of(kind: JobKind) -> str:
    """An expression of CEL: how many pods a job has at once."""
    mark = next((it for it in (ITEM, ENTRY) if it in kind.way), "")
    if not mark:
        return "object.spec.?parallelism.orValue(1)"
    parts = ".".join(("object", *kind.way[: kind.way.index(mark)]))
    part = "r" if mark == ITEM else f"{parts}[r]"
    each = f"({part}.?replicas.orValue(1) * {part}.?template.?spec.?parallelism.orValue(1))"
    return f"(has({parts}) ? {parts}.map(r, {each}).sum() : 0)"


def _has(each: str, way: tuple[str, ...]) -> str:
    """Returns an expression for the end of the way in existing templates. A missing template is no pod."""
    steps = [".".join((each, *way[: length + 1])) for length in range(len(way))]
    return f"{' && '.join(f'has({step})' for step in steps)}, {steps[-1]}"


def template_ways(item: JsonObject, kind: JobKind) -> Iterator[tuple[str | int, ...]]:
    """The way to each pod template that an object has."""
    yield from _ways(item, kind.way, ())


def _ways(value: object, way: tuple[str, ...], done: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if not way:
        if isinstance(value, Mapping):
            yield done
    elif way[0] == ITEM:
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _ways(item, way[1:], (*done, index))
    elif isinstance(value, Mapping):
        for key in value if way[0] == ENTRY else (way[0],):
            yield from _ways(value.get(key), way[1:], (*done, str(key)))


def _below(value: JsonObject, way: tuple[str, ...], part: PodPart) -> Iterator[PodPart]:
    if not way:
        yield replace(part, template=value)
        return
    if way[0] == "template":
        count, each = _beside(value)
        inner = replace(part, count=part.count * count, total=part.total * each, each=each)
        yield from _below(child(value, "template"), way[1:], inner)
    elif len(way) > 1 and way[1] == ITEM:
        for index, item in enumerate(rows(value.get(way[0]))):
            yield from _below(item, way[2:], replace(part, role=text(item.get("name")) or str(index)))
    elif len(way) > 1 and way[1] == ENTRY:
        for name, item in child(value, way[0]).items():
            yield from _below(child(item), way[2:], replace(part, role=str(name).lower()))
    else:
        yield from _below(child(value, way[0]), way[1:], part)


def _beside(holder: JsonObject) -> tuple[int, int]:
    """How many of the template that a mapping holds there are at once, and in all: a batch Job's come in turns."""
    # A JobSet holds a Job's template, so both count: replicas of the Job and its own parallelism.
    if "replicas" in holder:
        replicas = _count(holder.get("replicas"))
        return replicas, replicas
    completions = number(holder.get("completions"))
    parallel = _count(holder.get("parallelism"))
    # Without completions, a Job runs its pods together until one of them succeeds.
    return (parallel, parallel) if completions is None else (min(parallel, completions), max(completions, 0))


def _count(value: object) -> int:
    found = number(value)
    return 1 if found is None else max(0, found)
