"""A cluster in memory for tests of what talks to one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from pai_install.cluster.client import (
    ApiError,
    Eviction,
    EvictionOutcome,
    Impersonation,
    LogWindow,
    Patch,
    PatchKind,
    Select,
    Token,
    WatchEvent,
)
from pai_install.errors import PaiError
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject

_PLURALS = {"poddisruptionbudgets": "poddisruptionbudget"}


def singular(kind: str) -> str:
    """Deployment, deployments.apps -> deployment."""
    word = kind.lower().partition(".")[0]
    return _PLURALS.get(word, word.removesuffix("s"))


def ref_of(item: JsonObject) -> Ref:
    """What names an object."""
    return Ref(singular(item["kind"]), item["metadata"]["name"], item["metadata"].get("namespace", ""))


def merged(old: Any, change: Any) -> Any:
    """A JSON merge patch."""
    if not isinstance(old, Mapping) or not isinstance(change, Mapping):
        return change
    found = {**old, **{key: merged(old.get(key), value) for key, value in change.items()}}
    return {key: value for key, value in found.items() if value is not None}


@dataclass
class FakeCluster:
    """Objects by name; evictions of pods in `protected` are blocked. calls: what was asked, as (method, subject).

    makes: what a new object becomes at once, with what its controller makes. refuses: raised when something is created.
    rejects: raised by a dry run.
    token: what is given for any account.
    """

    objects: dict[Ref, dict[str, Any]] = field(default_factory=dict)
    protected: set[str] = field(default_factory=set)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    logged: dict[str, str] = field(default_factory=dict)
    changes: list[WatchEvent] = field(default_factory=list)
    waits: bool = True
    makes: Callable[[JsonObject], Sequence[JsonObject]] = lambda item: (item,)
    refuses: PaiError | None = None
    rejects: PaiError | None = None
    paths: dict[str, str] = field(default_factory=dict)
    token: Token | None = None

    @classmethod
    def of(cls, *objects: JsonObject) -> FakeCluster:
        """A cluster with those objects."""
        return cls({ref_of(item): deepcopy(dict(item)) for item in objects})

    def get(self, refs: Sequence[Ref]) -> tuple[JsonObject | None, ...]:
        self.calls.append(("get", tuple(refs)))
        return tuple(self.objects.get(self._key(ref)) for ref in refs)

    def list(self, *selects: Select) -> tuple[tuple[JsonObject, ...], ...]:
        self.calls.append(("list", selects))
        return tuple(tuple(self._listed(select)) for select in selects)

    def _listed(self, select: Select) -> Iterator[JsonObject]:
        for item in itertools.islice(self._selected(select), select.most or None):
            yield {key: item[key] for key in ("apiVersion", "kind", "metadata")} if select.outlines else item

    def raw(self, path: str) -> str:
        """What the test put there."""
        return self.paths.get(path, "")

    def raw_parts(self, path: str) -> Iterator[bytes]:
        yield self.raw(path).encode()

    def watch(self, select: Select) -> Iterator[WatchEvent]:
        self.calls.append(("watch", select))
        yield from self.changes

    def apply(self, objects: Sequence[JsonObject], *, force: bool = False) -> tuple[JsonObject, ...]:
        self.calls.append(("apply", (tuple(objects), force)))
        for item in objects:
            self.objects[ref_of(item)] = merged(self.objects.get(ref_of(item), {}), deepcopy(dict(item)))
        return tuple(self.objects[ref_of(item)] for item in objects)

    def create(self, objects: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
        self.calls.append(("create", tuple(objects)))
        if self.refuses is not None:
            raise self.refuses
        made = [found for item in objects for found in self.makes(item)]
        self.objects.update({ref_of(item): deepcopy(dict(item)) for item in made})
        return tuple(objects)

    def dry_run(self, objects: Sequence[JsonObject], identity: Impersonation | None = None) -> None:
        self.calls.append(("dry_run", (tuple(objects), identity)))
        if self.rejects is not None:
            raise self.rejects

    def patch(self, patches: Sequence[Patch]) -> tuple[JsonObject, ...]:
        self.calls.append(("patch", tuple(patches)))
        return tuple(self._patched(patch) for patch in patches)

    def delete(self, refs: Sequence[Ref], *, wait_s: float = 0) -> None:
        del wait_s
        self.calls.append(("delete", tuple(refs)))
        for ref in refs:
            self.objects.pop(self._key(ref), None)

    def delete_selected(self, select: Select, *, wait_s: float = 0) -> None:
        del wait_s
        self.calls.append(("delete_selected", select))
        for item in tuple(self._selected(select)):
            del self.objects[ref_of(item)]

    def wait(self, select: Select | Sequence[Ref], condition: str, timeout_s: float) -> bool:
        del timeout_s
        self.calls.append(("wait", (select, condition)))
        return self.waits

    def logs(self, pod: Ref, *, container: str = "", tail: int = -1, previous: bool = False) -> str:
        del container, tail, previous
        self.calls.append(("logs", pod))
        return self.logged.get(pod.name, "")

    def logs_of(self, select: Select, *, tail: int = -1) -> Mapping[str, str]:
        del tail
        self.calls.append(("logs_of", select))
        return self.logged

    def log_lines(self, pod: Ref, window: LogWindow, *, container: str = "") -> Iterator[str]:
        del container
        self.calls.append(("log_lines", pod))
        lines = self.logged.get(pod.name, "").splitlines()
        yield from lines[-window.tail :] if window.tail > 0 else lines

    def evict(self, pods: Sequence[Ref], *, grace_s: int | None = None) -> tuple[Eviction, ...]:
        del grace_s
        self.calls.append(("evict", tuple(pods)))
        return tuple(self._evicted(pod) for pod in pods)

    def request_token(self, account: Ref, lasting_s: int, bound: JsonObject) -> Token:
        self.calls.append(("request_token", (account, lasting_s, bound["metadata"]["name"])))
        if self.token is None:
            raise ApiError("kubectl create failed", reason="Forbidden")
        return self.token

    def _evicted(self, pod: Ref) -> Eviction:
        if pod.name in self.protected:
            return Eviction(pod, EvictionOutcome.BLOCKED, "it would violate the pod's disruption budget")
        gone = self.objects.pop(self._key(pod), None) is None
        return Eviction(pod, EvictionOutcome.GONE if gone else EvictionOutcome.EVICTED)

    def _patched(self, patch: Patch) -> JsonObject:
        key = self._key(patch.ref)
        if key not in self.objects:
            raise ApiError(f"{patch.ref} does not exist", reason="NotFound")
        assert patch.kind is not PatchKind.JSON, "not supported here"
        self.objects[key] = merged(self.objects[key], patch.body)
        return self.objects[key]

    def _selected(self, select: Select) -> Iterator[JsonObject]:
        kinds = {singular(kind) for kind in select.kinds}
        for ref, item in self.objects.items():
            if ref.kind in kinds and select.namespace in ("", ref.namespace) and _fits(item, select):
                yield item

    @staticmethod
    def _key(ref: Ref) -> Ref:
        return Ref(singular(ref.kind), ref.name, ref.namespace)


def _labelled(labels: dict[str, str], key: str, equals: str, word: str) -> bool:
    if key.startswith("!"):
        return key[1:] not in labels
    return key in labels and (not equals or labels[key] == word)


def _fits(item: JsonObject, select: Select) -> bool:
    labels = item["metadata"].get("labels", {})
    wanted = [part.partition("=") for part in select.labels.split(",") if part]
    fields = [part.partition("=") for part in select.fields.split(",") if part]
    return all(_labelled(labels, *part) for part in wanted) and all(
        _field(item, path) == value for path, _, value in fields
    )


def _field(item: Any, path: str) -> Any:
    for name in path.split("."):
        item = item.get(name, {})
    return item
