"""Warning events -> the newest warning of each object. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pai_install.documents.problem import printable
from pai_install.kube.objects import JsonObject, child, rows, text

EVENTS = "events"
FIELDS = "type=Warning"
_MOST_TEXT = 400
# a warning of the time before a pod had a machine
_UNPLACED = "FailedScheduling"


@dataclass(frozen=True, slots=True, order=True)
class WarningEvent:
    """What a controller says of an object, on one line. at: time in Kubernetes' format."""

    at: str
    text: str


def newest_warnings(events: Iterable[JsonObject]) -> Mapping[str, WarningEvent]:
    """UID of an object -> its newest warning."""
    found: dict[str, WarningEvent] = {}
    for event in events:
        uid = text(child(event, "involvedObject").get("uid"))
        if event.get("type") == "Warning" and uid:
            found[uid] = max(found.get(uid, WarningEvent("", "")), _warning(event))
    return found


def warning_of(job: JsonObject, warnings: Mapping[str, WarningEvent]) -> str:
    """The newest warning of a job's own object and of its owners, empty without one."""
    metadata = child(job, "metadata")
    uids = [text(it.get("uid")) for it in (metadata, *rows(metadata.get("ownerReferences")))]
    return max((warnings[uid] for uid in uids if uid in warnings), default=WarningEvent("", "")).text


def warning_of_pod(pod: JsonObject, warnings: Mapping[str, WarningEvent]) -> str:
    """The newest warning of a pod that has a machine, such as a volume that is missing there. Empty without one."""
    found = warnings.get(text(child(pod, "metadata").get("uid")))
    return "" if found is None or found.text.startswith(_UNPLACED) else found.text


def _warning(event: JsonObject) -> WarningEvent:
    series = text(child(event, "series").get("lastObservedTime"))
    at = series or text(event.get("lastTimestamp")) or text(event.get("eventTime"))
    reason, message = text(event.get("reason")), " ".join(text(event.get("message")).split())
    return WarningEvent(at, printable(f"{reason}: {message}" if message else reason)[:_MOST_TEXT])
