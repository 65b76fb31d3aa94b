"""The self-test's objects in the API as samples. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pai_install.kube.model import Pod
from pai_install.kube.objects import JsonObject, child, conditions, state_of, text
from pai_install.schedulers.self_test.model import GANG, ObservedGang, ObservedPod, Sample, Scenario

# what an object's own condition says of a job that ended well, by its kind
_ENDED = {"Job": "Complete", "JobSet": "Completed"}


def samples(objects: Iterable[JsonObject], scenarios: Sequence[Scenario], at_s: float) -> Mapping[str, Sample]:
    """Returns scenario -> its sample. objects: pods and jobs of the test."""
    found: dict[str, dict[str, list[JsonObject]]] = {}
    for entry in objects:
        metadata = child(entry, "metadata")
        gang = text(child(metadata, "labels").get(GANG))
        found.setdefault(text(metadata.get("namespace")), {}).setdefault(gang, []).append(entry)
    return {
        one.name: Sample(at_s, {name: _gang(found.get(one.namespace, {}).get(name, ())) for name in one.gangs})
        for one in scenarios
    }


def last_warning(events: Iterable[JsonObject]) -> str:
    """Returns the message of the newest event, or ""."""
    ordered = sorted(events, key=lambda event: text(event.get("lastTimestamp")) or text(event.get("eventTime")))
    return text(ordered[-1].get("message")) if ordered else ""


def _gang(objects: Sequence[JsonObject]) -> ObservedGang:
    pods = [entry for entry in objects if entry.get("kind") == "Pod"]
    jobs = [entry for entry in objects if entry.get("kind") != "Pod"]
    why = next((read.why for read in map(Pod.parse, pods) if read.phase == "Pending" and read.why), "")
    return ObservedGang(tuple(map(_pod, pods)), bool(jobs) and all(map(_done, jobs)), why)


def _pod(entry: JsonObject) -> ObservedPod:
    read = Pod.parse(entry)
    identity = text(child(entry, "metadata").get("uid")) or read.name
    return ObservedPod(identity, read.name, read.node, read.phase, read.terminating)


def _done(job: JsonObject) -> bool:
    status = child(job, "status")
    if text(child(status, "state").get("phase")) == "Completed":  # Volcano's
        return True
    return state_of(conditions(status.get("conditions")), _ENDED.get(text(job.get("kind")), "")) is True
