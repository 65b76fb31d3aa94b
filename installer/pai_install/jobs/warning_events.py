"""Warning events -> the newest warning of each object. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from pai_install.documents.problem import printable
from pai_install.kube.objects import JsonObject, child, number, rows, text
from pai_install.scheduling.job_kinds import JOB, JOBSET, kind_of

EVENTS = "events"
FIELDS = "type=Warning"
_MOST_TEXT = 400
# a warning of the time before a pod had a machine
_UNPLACED = "FailedScheduling"
# Jobs of a JobSet, and owners of a job
_MOST_PARTS = 64


@dataclass(frozen=True, slots=True, order=True)
class WarningEvent:
    """What a controller says of an object, on one line. at: time in Kubernetes' format."""

    at: str
    text: str


def newest_warnings(events: Iterable[JsonObject]) -> Mapping[str, WarningEvent]:
    """Subject of an event -> its newest warning."""
    found: dict[str, WarningEvent] = {}
    for event in events:
        for subject in subjects_of(event) if event.get("type") == "Warning" else ():
            found[subject] = max(found.get(subject, WarningEvent("", "")), _warning(event))
    return found


def subjects_of(event: JsonObject) -> tuple[str, ...]:
    """The UID of the object of an event, and the place of a Job, which may be a part of a JobSet."""
    about = child(event, "involvedObject")
    name = text(about.get("name")) if about.get("kind") == JOB.name else ""
    return tuple(filter(None, (text(about.get("uid")), name and f"{text(about.get('namespace'))}/{name}")))


def subjects_of_job(job: JsonObject) -> tuple[str, ...]:
    """The subjects of events about a job: its own object, its owners, and the Jobs of a JobSet."""
    metadata = child(job, "metadata")
    uids = (text(it.get("uid")) for it in (metadata, *rows(metadata.get("ownerReferences"))[:_MOST_PARTS]))
    return tuple(filter(None, (*uids, *islice(_parts(job), _MOST_PARTS))))


def _parts(job: JsonObject) -> Iterator[str]:
    """The places of the Jobs of a JobSet, which have no label of their user."""
    metadata = child(job, "metadata")
    for role in rows(child(job, "spec").get("replicatedJobs")) if kind_of(job) is JOBSET else ():
        for index in range(max(1, number(role.get("replicas")) or 0)):
            yield f"{text(metadata.get('namespace'))}/{text(metadata.get('name'))}-{text(role.get('name'))}-{index}"


def warning_of(job: JsonObject, warnings: Mapping[str, WarningEvent]) -> str:
    """The newest warning about a job, empty without one."""
    found = (warnings[subject] for subject in subjects_of_job(job) if subject in warnings)
    return max(found, default=WarningEvent("", "")).text


def warning_of_pod(pod: JsonObject, warnings: Mapping[str, WarningEvent]) -> str:
    """The newest warning of a pod that has a machine, such as a volume that is missing there. Empty without one."""
    found = warnings.get(text(child(pod, "metadata").get("uid")))
    return "" if found is None or found.text.startswith(_UNPLACED) else found.text


def _warning(event: JsonObject) -> WarningEvent:
    # Old and new clients of Kubernetes write the time of an event into different fields.
    series = text(child(event, "series").get("lastObservedTime"))
    at = series or text(event.get("lastTimestamp")) or text(event.get("eventTime"))
    reason, message = text(event.get("reason")), " ".join(text(event.get("message")).split())
    return WarningEvent(at, printable(f"{reason}: {message}" if message else reason)[:_MOST_TEXT])
