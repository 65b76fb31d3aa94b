"""Workloads and disruption budgets as frozen values. A missing value is None (unknown), never a good one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from pai_install.kube.model import Owner, Ref, controller
from pai_install.kube.objects import Condition, JsonObject, child, conditions, number, rows, state_of, text, words

# kind -> the fields of the wanted, the ready and the updated number of pods
_COUNTS = {
    "Deployment": (("spec", "replicas"), ("status", "readyReplicas"), ("status", "updatedReplicas")),
    "StatefulSet": (("spec", "replicas"), ("status", "readyReplicas"), ("status", "updatedReplicas")),
    "DaemonSet": (
        ("status", "desiredNumberScheduled"),
        ("status", "numberReady"),
        ("status", "updatedNumberScheduled"),
    ),
    "Job": (("spec", "completions"), ("status", "succeeded"), ("status", "succeeded")),
}


@dataclass(frozen=True, slots=True)
class Expression:
    """One rule of a selector. operator: In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool | None:
        """Returns whether the labels match, or None for an unknown operator."""
        outcome = {
            "In": labels.get(self.key) in self.values,
            # As in Kubernetes, NotIn also holds for an object without the label.
            "NotIn": labels.get(self.key) not in self.values,
            "Exists": self.key in labels,
            "DoesNotExist": self.key not in labels,
        }
        return outcome.get(self.operator)


@dataclass(frozen=True, slots=True)
class Selector:
    """Which pods an object speaks of, by their labels."""

    labels: Mapping[str, str] = field(default_factory=dict)
    expressions: tuple[Expression, ...] = ()

    @classmethod
    def parse(cls, selector: JsonObject) -> Self:
        """Reads a LabelSelector."""
        expressions = tuple(
            Expression(text(row.get("key")), text(row.get("operator")), tuple(map(str, row.get("values") or ())))
            for row in rows(selector.get("matchExpressions"))
        )
        return cls(words(selector.get("matchLabels")), expressions)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Returns whether it selects the labels. An unknown rule selects them, so that no pod counts as unprotected by
        mistake.
        """
        equal = all(labels.get(key) == value for key, value in self.labels.items())
        return equal and all(rule.holds(labels) is not False for rule in self.expressions)


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment, DaemonSet, StatefulSet, or Job.

    wanted, ready, updated: numbers of pods, for a Job of required and successful ones. None if unknown. observed: the
    controller has processed the newest specification.
    """

    kind: str
    name: str
    namespace: str
    wanted: int | None = None
    ready: int | None = None
    updated: int | None = None
    observed: bool | None = None
    owner: Owner | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()

    @classmethod
    def parse(cls, workload: JsonObject) -> Self:
        """Parses a workload of one of the four kinds. For other kinds, all numbers are None."""
        metadata, status = child(workload, "metadata"), child(workload, "status")
        kind = text(workload.get("kind"))
        counts = _COUNTS.get(kind, ())
        wanted, ready, updated = (_count(workload, place) for place in counts) if counts else (None, None, None)
        return cls(
            kind=kind,
            name=text(metadata.get("name")),
            namespace=text(metadata.get("namespace")),
            wanted=wanted,
            ready=ready,
            updated=updated,
            observed=_observed(kind, metadata, status),
            owner=controller(metadata),
            labels=words(metadata.get("labels")),
            conditions=conditions(status.get("conditions")),
        )

    @property
    def ref(self) -> Ref:
        """What names it."""
        return Ref(self.kind.lower(), self.name, self.namespace)

    @property
    def complete(self) -> bool | None:
        """Returns whether all its pods are ready and up to date, or the job has succeeded. None if unknown."""
        if self.kind == "Job":
            done = state_of(self.conditions, "Complete")
            return bool(done) if self.conditions or self.wanted is not None else None
        if None in (self.wanted, self.observed):
            return None
        return bool(self.observed) and self.ready == self.wanted and self.updated == self.wanted

    @property
    def failed(self) -> bool:
        """Whether a job has failed, or a deployment no longer progresses."""
        # A Deployment has no condition Failed. Past its deadline, its condition Progressing is False.
        stuck = any(entry.type == "Progressing" and entry.status == "False" for entry in self.conditions)
        return stuck or state_of(self.conditions, "Failed") is True


def _count(workload: JsonObject, place: tuple[str, str]) -> int | None:
    """A number of pods. The API leaves out a zero in a status that a controller has written."""
    part, name = place
    # The API leaves out a count of zero. Without any status the count is unknown.
    found = child(workload, part)
    if name not in found and part == "status" and found:
        return 0
    return number(found.get(name))


def _observed(kind: str, metadata: JsonObject, status: JsonObject) -> bool | None:
    seen, newest = number(status.get("observedGeneration")), number(metadata.get("generation"))
    # The status of a Job has no observedGeneration.
    if kind == "Job" or newest is None:
        return None
    return seen is not None and seen >= newest


@dataclass(frozen=True, slots=True)
class PodDisruptionBudget:
    """The budget of disruptions for selected pods. allowed: None if the API does not report it. healthy,
    wanted: pods.
    """

    name: str
    namespace: str
    selector: Selector = field(default_factory=Selector)
    allowed: int | None = None
    healthy: int | None = None
    wanted: int | None = None

    @classmethod
    def parse(cls, budget: JsonObject) -> Self:
        """Reads a PodDisruptionBudget."""
        metadata, status = child(budget, "metadata"), child(budget, "status")
        return cls(
            name=text(metadata.get("name")),
            namespace=text(metadata.get("namespace")),
            selector=Selector.parse(child(budget, "spec", "selector")),
            allowed=number(status.get("disruptionsAllowed")),
            healthy=number(status.get("currentHealthy")),
            wanted=number(status.get("desiredHealthy")),
        )

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether it protects a pod of that namespace with those labels."""
        return namespace == self.namespace and self.selector.matches(labels)
