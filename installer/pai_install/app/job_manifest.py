"""A submitted job as objects of Kubernetes, with its queue and its file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pai_install.documents.document import Document
from pai_install.jobs.job_file import with_file
from pai_install.jobs.masking import masked
from pai_install.jobs.place import JobPlace
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, text
from pai_install.scheduling.job_kinds import JobKind, kind_of


@dataclass(frozen=True, slots=True)
class JobManifest:
    """A job as an object, with its queue. name: as in its file. document: its part of the file."""

    name: str
    place: JobPlace
    item: JsonObject
    document: Document

    @property
    def kind(self) -> JobKind:
        """The kind of the object."""
        kind = kind_of(self.item)
        assert kind is not None  # noqa: S101 - only jobs are made here
        return kind

    @property
    def label(self) -> str:
        """Its name in Kubernetes."""
        return text(child(self.item, "metadata").get("name"))

    @property
    def ref(self) -> Ref:
        """Its place in the cluster."""
        return Ref(self.kind.full_name, self.label, self.place.owner.namespace)


@dataclass(frozen=True, slots=True)
class JobSubmission:
    """A file as objects. companions: objects beside the jobs, deleted with the last of them."""

    jobs: tuple[JobManifest, ...]
    companions: tuple[dict[str, Any], ...]

    def with_file(self, content: str) -> JobSubmission:
        """The submission that keeps its file, without secrets."""
        content = masked(content)
        if not content:
            return self
        kept = [with_file(one.item, content) for one in self.jobs]
        jobs = tuple(replace(one, item=item) for one, (item, _) in zip(self.jobs, kept, strict=True))
        return JobSubmission(jobs, (*self.companions, *(beside for _, beside in kept if beside is not None)))
