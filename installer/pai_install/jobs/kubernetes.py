"""Jobs that are Kubernetes objects already: kept as they are, and what they ask for. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pai_install.documents.document import Document, Entries, Items, Text
from pai_install.documents.problem import YamlPath, short
from pai_install.documents.quantity import QuantityError, parse_bytes
from pai_install.documents.scalars import MAX_COUNT, plain_data, shown
from pai_install.documents.validate import did_you_mean
from pai_install.json_schema import Count
from pai_install.scheduling.job_kinds import COUNTS, ENTRY, ITEM, WITH_PODS, JobKind
from pai_install.scheduling.job_queue import QUEUE_LABEL

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_MAX_NAME = 63
# Kubernetes adds five characters to metadata.generateName
_MAX_PREFIX = _MAX_NAME - 5
_PREFIX = "generateName"
_NULL = ("", "~", "null", "Null", "NULL")
_JOBS = {(kind.api, kind.name): kind for kind in WITH_PODS}
# what may stand in a file beside a job
COMPANIONS = frozenset({("v1", "ConfigMap"), ("v1", "Secret"), ("v1", "Service")})
_LATER = "its controller creates jobs later, and they have no owner and no queue"
# kinds of other projects that no site runs -> cause and remedy
_UNSUPPORTED = {
    ("batch", "CronJob"): (_LATER, "submit its job template as a Job"),
    ("batch.volcano.sh", "CronJob"): (_LATER, "submit its job template as a Volcano Job"),
    ("flow.volcano.sh", "JobFlow"): (_LATER, "submit each of its jobs as a Volcano Job"),
    ("flow.volcano.sh", "JobTemplate"): (_LATER, "submit it as a Volcano Job"),
    ("trainer.kubeflow.org", "TrainJob"): ("no site has Kubeflow Trainer 2", "write it as a JobSet or a PyTorchJob"),
}
_CPU = re.compile(r"(\d{1,9})(?:\.(\d{1,3}))?|(\d{1,12})m")


@dataclass(frozen=True, slots=True)
class KubernetesRole:
    """Pods of a native job that are alike. cpu_millis, memory_bytes: that one asks for; gpus: device -> how many."""

    name: str
    instances: Count
    cpu_millis: Count
    memory_bytes: Count
    devices: Mapping[str, Count]


@dataclass(frozen=True, slots=True)
class Companion:
    """An object that is no job and goes with one. content: as the file has it, at the places of `document`."""

    kind: str
    name: str
    content: Mapping[str, Any] = field(repr=False)
    document: Document = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class KubernetesJob:
    """One object that is a job. content: as the file has it, at the places of `document`. queue: that it names.

    generated: the name is a prefix, and the cluster needs a whole name.
    """

    kind: JobKind
    name: str
    namespace: str
    queue: str
    roles: tuple[KubernetesRole, ...]
    content: Mapping[str, Any] = field(repr=False)
    document: Document = field(repr=False, compare=False)
    generated: bool = False

    def with_suffix(self, suffix: str) -> KubernetesJob:
        """The job with a whole name. suffix: what makes the name unique, 5 letters or digits."""
        name = f"{self.name}{suffix}"
        metadata = {key: value for key, value in self.content["metadata"].items() if key != _PREFIX}
        content = {**self.content, "metadata": {**metadata, "name": name}}
        return replace(self, name=name, content=content, generated=False)


@dataclass(frozen=True, slots=True)
class KubernetesFile:
    """A file of Kubernetes objects. beside: those that are no jobs and go with them, in the order of the file."""

    jobs: tuple[KubernetesJob, ...]
    beside: tuple[Companion, ...] = ()

    @property
    def name(self) -> str:
        """The first job's."""
        return self.jobs[0].name

    @property
    def documents(self) -> tuple[Document, ...]:
        """Those of the file, with what is wrong with each."""
        return (*(job.document for job in self.jobs), *(one.document for one in self.beside))


def is_native(document: Document) -> bool:
    """Whether a document says that it is a Kubernetes object."""
    return "kind" in document.content or "apiVersion" in document.content


def read_object(document: Document) -> KubernetesJob | Companion | None:
    """A job, or an object that may stand beside one; None where problems were added that leave none."""
    root = document.content
    api, name = (_text(root.get(key)) for key in ("apiVersion", "kind"))
    for key, value in (("apiVersion", api), ("kind", name)):
        if not value:
            document.add((key,), "site.missing", f"{key} is required", "see `kubectl explain`, e.g. kind: Job")
    if not api or not name:
        return None
    kind = _JOBS.get((api, name))
    if kind is None and (api, name) not in COMPANIONS:
        _report_kind(document, api, name)
        return None
    problems_before = len(document.problems)
    generated = kind is not None and not _text(document.at(("metadata", "name")))
    named, namespace = _named(document, generated=generated), _text(document.at(("metadata", "namespace")))
    if kind is None:
        return (
            Companion(name, named, _as_written(root), document) if len(document.problems) == problems_before else None
        )
    roles = tuple(_roles(document, kind))
    if len(document.problems) > problems_before:
        return None
    if not roles or not sum(role.instances for role in roles):
        document.add(kind.way, "site.missing", "no pods are asked for", "see `kubectl explain`")
        return None
    return KubernetesJob(kind, named, namespace, _queue(document, kind), roles, _as_written(root), document, generated)


def queue_path(document: Document, kind: JobKind) -> YamlPath:
    """Where a job says its queue itself."""
    if kind.queue and document.at(kind.queue) is not None:
        return kind.queue
    return ("metadata", "labels", QUEUE_LABEL)


def _queue(document: Document, kind: JobKind) -> str:
    return _text(document.at(queue_path(document, kind)))


def _report_kind(document: Document, api: str, name: str) -> None:
    others = sorted(known for known, kind in _JOBS if kind == name)
    if others:
        remedy = f"write {' or '.join(others)}"
        document.add(("apiVersion",), "site.kind", f"{short(api)} has no {short(name)} that is a job here", remedy)
        return
    if (reason := _UNSUPPORTED.get((api.partition("/")[0], name))) is not None:
        document.add(("kind",), "site.kind", f"cannot submit {short(name)}: {reason[0]}", reason[1])
        return
    known = sorted({kind for _, kind in (*_JOBS, *COMPANIONS)})
    document.add(("kind",), "site.kind", f"{short(name)} of {short(api)} is no job", did_you_mean(name, known))


def _named(document: Document, *, generated: bool) -> str:
    """The object's name or, where the name is generated, its prefix. Adds a problem for a missing or invalid one."""
    path: YamlPath = ("metadata", _PREFIX if generated else "name")
    name, most = _text(document.at(path)), _MAX_PREFIX if generated else _MAX_NAME
    if not name:
        document.add(("metadata", "name"), "site.missing", "metadata.name is required", "add it")
    elif _NAME.fullmatch(name.rstrip("-.") if generated else name) is None or len(name) > most:
        meant = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:most].strip("-.")
        remedy = f"write {meant}" if meant else "use lower-case letters, digits and '-'"
        message = f"{short(name)} is no name: Kubernetes takes up to {most} lower-case letters, digits and '-'"
        document.add(path, "site.kubernetes-name", message, remedy)
    return name


def _roles(document: Document, kind: JobKind) -> Iterator[KubernetesRole]:
    """Roles, by each place where a kind has them. What stands before the first of them has to be there."""
    marks = [kind.way.index(mark) for mark in (ITEM, ENTRY) if mark in kind.way]
    required = kind.way[: marks[0]] if marks else (*kind.way, "spec")
    yield from _below(document, required, (), (*kind.way, "spec"), "")


def _below(
    document: Document, required: tuple[str, ...], path: YamlPath, pattern: tuple[str, ...], name: str
) -> Iterator[KubernetesRole]:
    """Follows a way to templates."""
    if not pattern:
        yield from _role(document, path, name)
        return
    value = document.at(path)
    if pattern[0] not in (ITEM, ENTRY):
        if isinstance(value, Entries) and pattern[0] in value:
            yield from _below(document, required, (*path, pattern[0]), pattern[1:], name)
        elif not path or isinstance(value, Entries):
            if pattern[0] in required:
                document.add((*path, pattern[0]), "site.missing", f"{pattern[0]} is required", "see `kubectl explain`")
        else:
            document.add(path, "site.type", f"a mapping is expected, found {_shown(value)}", "see `kubectl explain`")
        return
    if isinstance(value, Entries) and pattern[0] == ENTRY:
        for key in value:
            yield from _below(document, required, (*path, key), pattern[1:], key)
    elif isinstance(value, Items) and pattern[0] == ITEM:
        for number, item in enumerate(value):
            own = _text(item.get("name")) if isinstance(item, Entries) else ""
            yield from _below(document, required, (*path, number), pattern[1:], own or str(number))
    else:
        document.add(path, "site.type", f"roles are expected, found {_shown(value)}", "see `kubectl explain`")


def _role(document: Document, path: YamlPath, name: str) -> Iterator[KubernetesRole]:
    """The pods of the specification at `path`."""
    instances = 1
    # A JobSet has templates within templates, and each level has a number of its own.
    for place in (number for number, key in enumerate(path) if key == "template"):
        counts = [(*path[:place], key) for key in COUNTS]
        instances *= next((_count(document, at) for at in counts if document.at(at) is not None), 1)
    containers = document.at((*path, "containers"))
    if not isinstance(containers, Items) or not containers:
        document.add((*path, "containers"), "site.missing", "needs a list of containers", "see `kubectl explain pod`")
        return
    cpu = memory = 0
    devices: dict[str, int] = {}
    for number in range(len(containers)):
        below: YamlPath = (*path, "containers", number, "resources")
        cpu += _requested(document, below, "cpu", _millis)
        memory += _requested(document, below, "memory", parse_bytes)
        for device in _devices(document, below):
            devices[device] = devices.get(device, 0) + _device(document, below, device)
    named = name or _text(document.at(("metadata", "name"))) or _text(document.at(("metadata", _PREFIX)))
    yield KubernetesRole(named, instances, cpu, memory, devices)


def _count(document: Document, path: YamlPath) -> int:
    word = _text(document.at(path))
    if not re.fullmatch(r"\d{1,6}", word) or int(word) > MAX_COUNT:
        message = f"{_shown(document.at(path))} is no number of pods"
        document.add(path, "site.number", message, f"write 0 to {MAX_COUNT}")
        return 0
    return int(word)


def _requested(document: Document, path: YamlPath, resource: str, read: Any) -> int:  # noqa: ANN401 - text -> number
    """What a container requests; where it only has a limit, Kubernetes takes that."""
    for kind in ("requests", "limits"):
        value = document.at((*path, kind, resource))
        if value is None:
            continue
        try:
            return int(read(_text(value)))
        except (QuantityError, ValueError) as error:
            remedy = getattr(error, "remedy", "") or "write it as Kubernetes does, e.g. 500m or 2"
            document.add(
                (*path, kind, resource), "site.quantity", f"{_shown(value)} is no amount of {resource}", remedy
            )
            return 0
    return 0


def _millis(word: str) -> int:
    match = _CPU.fullmatch(word)
    if match is None:
        raise ValueError(word)
    if match[3]:
        return int(match[3])
    return int(match[1]) * 1000 + int((match[2] or "0").ljust(3, "0"))


def _devices(document: Document, path: YamlPath) -> Iterator[str]:
    """Resources of devices that a container names, each once."""
    seen: set[str] = set()
    for kind in ("requests", "limits"):
        named = document.at((*path, kind))
        for resource in named if isinstance(named, Entries) else ():
            if "/" in resource and resource not in seen:
                seen.add(resource)
                yield resource


def _device(document: Document, path: YamlPath, resource: str) -> int:
    """How many devices a container asks for; Kubernetes refuses requests that differ from limits."""
    found: dict[str, int] = {}
    for kind in ("requests", "limits"):
        value = document.at((*path, kind, resource))
        if value is None:
            continue
        word = _text(value)
        if not re.fullmatch(r"\d{1,6}", word):
            message = f"{_shown(value)} is no number of devices"
            document.add((*path, kind, resource), "site.number", message, "write a whole number")
            return 0
        found[kind] = int(word)
    if "requests" in found and found.get("limits") != found["requests"]:
        message = f"{found['requests']} of {resource} requested, and " + (
            f"{found['limits']} are the limit" if "limits" in found else "no limit"
        )
        remedy = f"write {resource}: {found['requests']} below limits, too"
        document.add((*path, "requests", resource), "site.contradiction", message, remedy)
    return found.get("requests", found.get("limits", 0))


def _as_written(value: object) -> Any:  # noqa: ANN401 - any content
    """Content as kubectl reads it: with nothing for null, and numbers of the base 8 as such."""
    if isinstance(value, dict):
        return {str(key): _as_written(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_written(item) for item in value]
    if isinstance(value, Text) and value.plain:
        if value in _NULL:
            return None
        # defaultMode: 0644 is the usual form of a mode in manifests. As a decimal number it would be another mode.
        if re.fullmatch(r"[+-]?0o?[0-7]{1,21}", value):
            return int(value.replace("o", ""), 8)
    return plain_data(value)


def _text(value: object) -> str:
    return str(value).strip() if isinstance(value, Text) else ""


def _shown(value: object) -> str:
    return "nothing" if value is None else shown(value)
