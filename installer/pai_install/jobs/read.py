"""A job's file -> a Job or a KubernetesFile, or what is wrong with it: the one door to every protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from pai_install.documents.document import Document, Items
from pai_install.documents.parse import parse_document, parse_rewritten, split_lines
from pai_install.documents.problem import Problem, YamlPath, printable
from pai_install.documents.reader import read_text_file
from pai_install.jobs.job_file import MAX_BYTES
from pai_install.jobs.kubernetes import Companion, KubernetesFile, KubernetesJob, is_native, queue_path, read_object
from pai_install.jobs.model import Job
from pai_install.jobs.openpai_v1 import read_v1
from pai_install.jobs.openpai_v2 import read_v2
from pai_install.jobs.source_text import documents, unescaped
from pai_install.scheduling.job_kinds import template_ways
from pai_install.scheduling.model import Priority

Protocol = Literal["openpai-v1", "openpai-v2", "kubernetes"]
MAX_DOCUMENTS = 100
_TOP = "a job"
_REMEDY = (
    "a job of OpenPAI's has protocolVersion: 2 (or jobName, before 1.0), and one of Kubernetes apiVersion and kind"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job's file says something."""

    document: Document
    path: YamlPath


@dataclass(frozen=True)
class JobReading:
    """Everything that was found out about a file; `job` is None when it has errors.

    places: what a site is asked about -> where the file says it, or would: virtual-cluster, priority, mount:STORAGE,
    role:NAME, resources:NAME, sku:NAME; of Kubernetes' objects namespace:NUMBER, kind:NUMBER, queue:NUMBER.
    text: the whole file, with its secrets.
    """

    file: str
    job: Job | KubernetesFile | None
    problems: tuple[Problem, ...]
    protocol: Protocol | None = None
    places: Mapping[str, Place] = field(default_factory=dict, repr=False)
    text: str = field(default="", repr=False)

    def with_problems(self, found: tuple[Problem, ...]) -> JobReading:
        """This and more that is wrong: an error leaves no job."""
        job = None if any(problem.is_error for problem in found) else self.job
        return replace(self, job=job, problems=_sorted([*self.problems, *found]))

    def in_queue(self, cluster: str | None, priority: Priority | None) -> JobReading:
        """The reading with another virtual cluster and priority. None leaves the value of the file."""
        if isinstance(self.job, Job):
            cluster, priority = cluster or self.job.virtual_cluster, priority or self.job.priority
            return replace(self, job=replace(self.job, virtual_cluster=cluster, priority=priority))
        if isinstance(self.job, KubernetesFile):
            jobs = tuple(replace(job, queue=cluster or job.queue) for job in self.job.jobs)
            return replace(self, job=replace(self.job, jobs=jobs))
        return self


def read_job(path: Path) -> JobReading:
    """Reads a file; never raises for anything that is wrong with it. A Job's `job` may hold secrets."""
    document = _document(path)
    text = read_text_file(path, document)
    if text is None:
        return JobReading(document.file, None, tuple(document.problems))
    return read_job_text(text, path)


def read_job_text(text: str, path: Path) -> JobReading:
    """As read_job, from a text that is not read from `path` again."""
    return replace(_read(re.sub("\r\n?", "\n", text), path), text=text)


def _read(text: str, path: Path) -> JobReading:
    document = _document(path)
    if len(text) > MAX_BYTES:
        message = f"is larger than {MAX_BYTES // 1024} KiB: no API server keeps a job of that size"
        document.add((), "site.file-size", message, "put data on a storage, and mount that")
        return JobReading(document.file, None, tuple(document.problems))
    parts = documents(text, MAX_DOCUMENTS)
    if len(parts) > 1:
        return _several(parts, path)
    _parse(parts[0] if parts else text, document)
    return _openpai(document) if document.root is None or not is_native(document) else _native([document])


def _document(path: Path) -> Document:
    return Document(printable(str(path)), path.parent, of="job")


def _parse(text: str, document: Document) -> None:
    as_json = unescaped(text) if text.lstrip().startswith("{") else None
    if as_json is None or not as_json.removed:
        parse_document(text, document, top=_TOP)
        return
    document.lines = split_lines(text)
    parse_rewritten(as_json.text, document, as_json.origin, top=_TOP)
    before = text[: as_json.removed[0]]
    letter = printable(text[as_json.removed[0] + 1])
    mark = document.mark(())._replace(line=before.count("\n") + 1, column=len(before) - before.rfind("\n"))
    count = len(as_json.removed)
    again = f", and {count - 1} more like it" if count > 1 else ""
    message = f"\\{letter} is not JSON, and is read as {letter}{again}: a shell or a web page wrote the backslash"
    document.add((), "site.escape", message, "remove the backslash", severity="warning", mark=mark)


def _several(parts: list[str], path: Path) -> JobReading:
    if len(parts) > MAX_DOCUMENTS:
        document = _document(path)
        document.add((), "site.count", f"has more than {MAX_DOCUMENTS} documents", "divide it")
        return JobReading(document.file, None, tuple(document.problems))
    found = []
    for part in parts:
        document = _document(path)
        _parse(part, document)
        found.append(document)
    if any(document.root is not None and is_native(document) for document in found):
        return _native(found)
    second = found[1]
    if not second.problems:
        message = "a file has one job of OpenPAI's, and here a second begins"
        mark = second.root.mark if second.root is not None else None
        second.add((), "site.several", message, "write each in a file of its own", mark=mark)
    problems = _sorted([problem for document in found for problem in document.problems])
    return JobReading(second.file, None, problems)


def _openpai(document: Document) -> JobReading:
    places: dict[str, YamlPath] = {}
    root, job, protocol = document.content, None, None
    if document.root is not None:
        roles = root.get("taskRoles")
        # Protocol 2 has a mapping of roles, and protocol 1 a list. So a file without its version is still told apart.
        if "protocolVersion" in root or isinstance(roles, dict):
            protocol, job = "openpai-v2", read_v2(document, places)
        elif "jobName" in root or isinstance(roles, Items):
            protocol, job = "openpai-v1", read_v1(document, places)
        else:
            document.add((), "site.protocol", "is no job that is known here", _REMEDY)
    problems = _sorted(document.problems)
    if any(problem.is_error for problem in problems):
        job = None
    at = {key: Place(document, path) for key, path in places.items()}
    return JobReading(document.file, job, problems, protocol, at)  # type: ignore[arg-type]


def _native(found: list[Document]) -> JobReading:
    jobs: list[KubernetesJob] = []
    beside: list[Companion] = []
    places: dict[str, Place] = {}
    for document in found:
        read = read_object(document) if document.root is not None else None
        if isinstance(read, KubernetesJob):
            number = len(jobs)
            places |= {
                f"namespace:{number}": Place(document, ("metadata", "namespace")),
                f"kind:{number}": Place(document, ("kind",)),
                f"queue:{number}": Place(document, queue_path(document, read.kind)),
            }
            ways = template_ways(read.content, read.kind)
            places |= {
                f"role:{number}:{role.name}": Place(document, (*way, "spec", "containers"))
                for role, way in zip(read.roles, ways, strict=False)
            }
            jobs.append(read)
        elif read is not None:
            beside.append(read)
    problems = [problem for document in found for problem in document.problems]
    if not jobs and not any(problem.is_error for problem in problems):
        found[0].add((), "site.missing", "holds no job, only what goes with one", "add the job to the file")
        problems = list(found[0].problems)
    errors = any(problem.is_error for problem in problems)
    job = KubernetesFile(tuple(jobs), tuple(beside)) if jobs and not errors else None
    return JobReading(found[0].file, job, _sorted(problems), "kubernetes", places)


def _sorted(problems: list[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))
