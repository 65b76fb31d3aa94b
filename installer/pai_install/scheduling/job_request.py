"""Reads one job before its submission: the requests of its pods, and its queue. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from yaml import YAMLError

from pai_install.kube.objects import JsonObject, child, text, words
from pai_install.scheduling.job_kinds import WITH_PODS, JobKind, PodPart, kind_of
from pai_install.scheduling.job_queue import HIVED_MARKER, JobQueue, cell_type_of, cells_of, hived_spec, queue_of
from pai_install.scheduling.model import SKU_LABEL
from pai_install.scheduling.usage.amounts import requests_of_pod
from pai_install.system.yaml import load_untrusted_yaml


class JobRequestError(ValueError):
    """The text is not one job of a known kind."""


@dataclass(frozen=True, slots=True)
class PodRequest:
    """Equal pods. resources: of one pod, in Kubernetes' base units. cells: HiveD's. sku: machine type, empty: any.

    pin, group: HiveD's pinned cell and affinity group, empty: none.
    """

    role: str
    count: int
    resources: Mapping[str, float]
    cells: int = 0
    sku: str = ""
    pin: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job that is not submitted yet. namespace: empty where it names none."""

    kind: JobKind
    name: str
    namespace: str
    queue: JobQueue
    pods: tuple[PodRequest, ...]

    @property
    def pod_count(self) -> int:
        """Pods of all roles."""
        return sum(one.count for one in self.pods)


def read_job_request(content: str) -> JobRequest:
    """The job in a YAML text of one object. Raises JobRequestError with a sentence."""
    try:
        item = load_untrusted_yaml(content)
    except (YAMLError, ValueError) as error:
        raise JobRequestError(f"one YAML document is required: {str(error).splitlines()[0]}") from error
    if not isinstance(item, Mapping):
        raise JobRequestError("one object is required")
    return job_request_of(item)


def job_request_of(item: JsonObject) -> JobRequest:
    """The request of a job's object. Raises JobRequestError with a sentence."""
    kind = kind_of(item)
    if kind is None:
        known = ", ".join(kind.shown for kind in WITH_PODS)
        raise JobRequestError(f"{text(item.get('kind')) or 'an object without kind'} is not a job: known are {known}")
    pods = tuple(_pod_request(kind, part) for part in kind.parts(item) if part.count > 0)
    if not pods:
        raise JobRequestError("the job has no pods")
    metadata = child(item, "metadata")
    name = text(metadata.get("name")) or text(metadata.get("generateName")) or kind.name.lower()
    return JobRequest(kind, name, text(metadata.get("namespace")), queue_of(item, kind), pods)


def _pod_request(kind: JobKind, part: PodPart) -> PodRequest:
    spec, cells = child(part.template, "spec"), hived_spec(part.template)
    requests = requests_of_pod(spec)
    return PodRequest(
        part.role or ("pods" if kind.way else "pod"),
        part.count,
        {name: amount for name, amount in requests.items() if amount > 0 and name != HIVED_MARKER},
        cells_of(cells),
        words(spec.get("nodeSelector")).get(SKU_LABEL, "") or cell_type_of(cells),
        text(cells.get("pinnedCellId")),
        text(child(cells, "affinityGroup").get("name")),
    )
