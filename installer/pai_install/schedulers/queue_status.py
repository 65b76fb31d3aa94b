"""Whether a cluster holds what virtual clusters compile to, and what their scheduler says of it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import Any, NamedTuple

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.kube.objects import Condition, JsonObject, child, conditions, number, quantity, text

CHECK = "virtual-clusters"
# of a queue that an administrator holds: Kueue's `spec.stopPolicy`, Volcano's `status.state`
_HOLDS, _CLOSED = ("Hold", "HoldAndDrain"), ("Closed", "Closing")


class ObjectName(NamedTuple):
    """kind: as kubectl takes it. namespace: "" for the cluster's own."""

    kind: str
    name: str
    namespace: str = ""


class ObjectState(StrEnum):
    """GOOD: as it should be. HELD: an administrator holds it. UNSURE: not yet. WRONG: waiting does not change it."""

    GOOD = "good"
    HELD = "held"
    UNSURE = "unsure"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class ObjectStatus:
    """The state of one object. why: as text, empty if it is good."""

    of: ObjectName
    state: ObjectState = ObjectState.GOOD
    why: str = ""

    def __str__(self) -> str:
        name = f"{self.of.kind.partition('.')[0]}/{self.of.name}"
        return f"{name}{f' in {self.of.namespace}' if self.of.namespace else ''} {self.why}".rstrip()


def name_of(entry: JsonObject) -> ObjectName:
    """What names an object, in its own version: another one has other fields."""
    metadata, kind = child(entry, "metadata"), text(entry.get("kind")).lower()
    group, _slash, version = text(entry.get("apiVersion")).rpartition("/")
    return ObjectName(
        f"{kind}.{version}.{group}" if group else kind, text(metadata["name"]), text(metadata.get("namespace"))
    )


def object_statuses(wanted: Sequence[JsonObject], seen: Sequence[JsonObject | None]) -> tuple[ObjectStatus, ...]:
    """Returns the state of each desired object. seen: its current object, in the same order."""
    return tuple(_object_status(one, found) for one, found in zip(wanted, seen, strict=True))


def _object_status(wanted: JsonObject, found: JsonObject | None) -> ObjectStatus:
    name = name_of(wanted)
    if found is None:
        return ObjectStatus(name, ObjectState.WRONG, "is not there")
    if child(found, "metadata").get("deletionTimestamp"):
        return ObjectStatus(name, ObjectState.UNSURE, "is being deleted")
    where = difference({key: value for key, value in wanted.items() if key not in ("apiVersion", "kind")}, found)
    if where:
        return ObjectStatus(name, ObjectState.WRONG, f"has another {where}")
    judge = _JUDGES.get(text(wanted.get("kind")))
    return ObjectStatus(name, *judge(found)) if judge is not None else ObjectStatus(name)


def difference(wanted: Any, found: Any, path: str = "") -> str:  # noqa: ANN401 - whatever JSON can hold
    """The first field in which something is not as it should be; empty where all is. What others added is no matter."""
    if isinstance(wanted, Mapping):
        fields = found if isinstance(found, Mapping) else {}
        deeper = ((it, fields.get(key), f"{path}.{key}".strip(".")) for key, it in wanted.items())
        return next((where for one in deeper if (where := difference(*one))), "")
    if isinstance(wanted, list | tuple):
        entries = found if isinstance(found, list) else []
        both = enumerate(zip_longest(wanted, entries))
        return next((where for n, (one, it) in both if (where := difference(one, it, f"{path}[{n}]"))), "")
    return "" if _same(wanted, found) else path


def _same(wanted: object, found: object) -> bool:
    """Whether two plain values mean the same; a quantity has several spellings, and what is empty is left out."""
    if wanted == found or (not wanted and found is None):
        return True
    # The API server may write 1000m as 1.
    amounts = quantity(wanted), quantity(found)
    return None not in amounts and amounts[0] == amounts[1]


_Judged = tuple[ObjectState, str]


def _of_kueue(found: JsonObject) -> _Judged:
    """Of a ClusterQueue or LocalQueue, by its condition Active."""
    held = text(child(found, "spec").get("stopPolicy"))
    if held in _HOLDS:
        return ObjectState.HELD, f"is held: stopPolicy {held}"
    active = next((it for it in conditions(child(found, "status").get("conditions")) if it.type == "Active"), None)
    # Right after a change, the condition still is the verdict on the old specification.
    if active is None or _of_before(found):
        return ObjectState.UNSURE, "was not looked at by Kueue yet"
    # the queue of all namespaces says itself why
    if active.status == "True" or active.reason == "ClusterQueueIsInactive":
        return ObjectState.GOOD, ""
    return ObjectState.UNSURE, f"is not active: {_sentence(active)}"


def _of_before(found: JsonObject) -> bool:
    """Whether the condition is of the object as it was before its last change."""
    rows = child(found, "status").get("conditions")
    seen = [number(row.get("observedGeneration")) for row in rows or () if row.get("type") == "Active"]
    generation = number(child(found, "metadata").get("generation"))
    return any(it is not None and generation is not None and it < generation for it in seen)


def _sentence(condition: Condition) -> str:
    return condition.message or condition.reason or condition.status


def _of_volcano(found: JsonObject) -> _Judged:
    state = text(child(found, "status").get("state"))
    if state == "Open":
        return ObjectState.GOOD, ""
    if state in _CLOSED:
        return ObjectState.HELD, f"is held: {state}"
    return ObjectState.UNSURE, f"is {state or 'not looked at by Volcano yet'}"


def _of_quota(found: JsonObject) -> _Judged:
    """A ResourceQuota counts only what its status repeats."""
    where = difference(child(found, "spec", "hard"), child(found, "status", "hard"))
    return (ObjectState.UNSURE, f"does not count {where} yet") if where else (ObjectState.GOOD, "")


_JUDGES: Mapping[str, Callable[[JsonObject], _Judged]] = {
    "ClusterQueue": _of_kueue,
    "LocalQueue": _of_kueue,
    "Queue": _of_volcano,
    "ResourceQuota": _of_quota,
}


def unsure(found: Sequence[ObjectStatus]) -> bool:
    """Whether waiting can change the verdict: something is not yet as it should be, the rest is not wrong."""
    states = {it.state for it in found}
    return ObjectState.UNSURE in states and ObjectState.WRONG not in states


def holds(found: Sequence[ObjectStatus]) -> bool:
    """Whether all is as it should be, or held by an administrator."""
    return all(it.state in (ObjectState.GOOD, ObjectState.HELD) for it in found)


def findings(found: Sequence[ObjectStatus]) -> tuple[Finding, ...]:
    """One for each object that is not good; one for all where every one of them is."""
    lines = tuple(_findings(found))
    return lines or (
        Finding(CHECK, Verdict.PASS, "cluster", f"the scheduler has taken the virtual clusters: {len(found)} objects"),
    )


def _findings(found: Sequence[ObjectStatus]) -> Iterator[Finding]:
    for it in found:
        if it.state is ObjectState.HELD:
            remedy = "resume it to start jobs again"
            yield Finding(CHECK, Verdict.WARN, "cluster", str(it), remedy=remedy)
        elif it.state is not ObjectState.GOOD:
            where = f" --namespace={it.of.namespace}" if it.of.namespace else ""
            remedy = f"run kubectl describe {it.of.kind.partition('.')[0]} {it.of.name}{where}"
            yield Finding(CHECK, Verdict.FAIL, "cluster", str(it), expected="as the site says", remedy=remedy)
