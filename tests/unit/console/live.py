"""A cluster in memory that tells watches of its changes, and lets each caller do what its roles say."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from queue import Queue
from typing import Any

from pai_install.cluster.client import ApiError, ClusterClient, LogWindow, Patch, Select, WatchEvent
from pai_install.console.caller import Caller
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject
from tests.unit.cluster.fake import FakeCluster, ref_of, singular

REVIEW = "SelfSubjectAccessReview"
_NUMBERS = itertools.count(1)


@dataclass
class LiveCluster(FakeCluster):
    """Objects get a UID and a time, as from an API server."""

    queues: list[tuple[Select, Queue[WatchEvent | None]]] = field(default_factory=list)
    broken: ApiError | None = None

    def watch(self, select: Select) -> Iterator[WatchEvent]:
        queue: Queue[WatchEvent | None] = Queue()
        self.queues.append((select, queue))
        for item in self.list(select)[0]:
            yield WatchEvent("ADDED", deepcopy(item))
        yield WatchEvent("BOOKMARK", {})
        # without polling: many tests leave watches
        while self.broken is None and (event := queue.get()) is not None:
            yield event
        if self.broken is not None:
            raise self.broken

    def lose(self, error: ApiError) -> None:
        """Ends the watches of now and later with an error."""
        self.broken = error
        self.end()

    def end(self) -> None:
        """Ends the watches."""
        for _, queue in self.queues:
            queue.put(None)

    def put(self, *objects: JsonObject) -> None:
        """New or changed objects, as controllers make them."""
        for item in objects:
            made = deepcopy(dict(item))
            metadata = made.setdefault("metadata", {})
            metadata.setdefault("uid", f"uid-{next(_NUMBERS)}")
            metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
            known = ref_of(made) in self.objects
            self.objects[ref_of(made)] = made
            self._report("MODIFIED" if known else "ADDED", made)

    def create(self, objects: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
        self.calls.append(("create", tuple(objects)))
        if self.refuses is not None:
            raise self.refuses
        for item in objects:
            if ref_of(item) in self.objects:
                raise ApiError("cannot create", reason="AlreadyExists")
            self.put(item)
        return tuple(self.objects[ref_of(item)] for item in objects)

    def patch(self, patches: Sequence[Patch]) -> tuple[JsonObject, ...]:
        found = super().patch(patches)
        for item in found:
            self._report("MODIFIED", item)
        return found

    def delete(self, refs: Sequence[Ref], *, wait_s: float = 0) -> None:
        gone = [self.objects.get(Ref(singular(ref.kind), ref.name, ref.namespace)) for ref in refs]
        super().delete(refs, wait_s=wait_s)
        for item in gone:
            if item is not None:
                self._report("DELETED", item)

    def delete_selected(self, select: Select, *, wait_s: float = 0) -> None:
        gone = self.list(select)[0]
        super().delete_selected(select, wait_s=wait_s)
        for item in gone:
            self._report("DELETED", item)

    def _report(self, kind: str, item: JsonObject) -> None:
        for select, queue in self.queues:
            if any(item is one or ref_of(one) == ref_of(item) for one in self._of(select, item)):
                queue.put(WatchEvent(kind, deepcopy(item)))

    @staticmethod
    def _of(select: Select, item: JsonObject) -> tuple[JsonObject, ...]:
        return FakeCluster({ref_of(item): dict(item)}).list(select)[0]


@dataclass
class Acting:
    """The cluster for one caller. namespaces: where the caller reads and writes, None for all."""

    cluster: LiveCluster
    caller: Caller
    namespaces: frozenset[str] | None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)

    def get(self, refs: Sequence[Ref]) -> tuple[JsonObject | None, ...]:
        for ref in refs:
            self._require(ref.namespace)
        return self.cluster.get(refs)

    def list(self, *selects: Select) -> tuple[tuple[JsonObject, ...], ...]:
        for select in selects:
            self._require(select.namespace)
        return self.cluster.list(*selects)

    def create(self, objects: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
        if [item["kind"] for item in objects] == [REVIEW]:
            space = objects[0]["spec"]["resourceAttributes"]["namespace"]
            allowed = self.namespaces is None or space in self.namespaces
            return ({**objects[0], "status": {"allowed": allowed}},)
        for item in objects:
            self._require(item["metadata"].get("namespace", ""))
        return self.cluster.create(objects)

    def apply(self, objects: Sequence[JsonObject], *, force: bool = False) -> tuple[JsonObject, ...]:
        for item in objects:
            self._require_written(item["metadata"].get("namespace", ""))
            self._require_owner(self.cluster.objects.get(ref_of(item)))
        return self.cluster.apply(objects, force=force)

    def delete(self, refs: Sequence[Ref], *, wait_s: float = 0) -> None:
        for ref in refs:
            self._require_written(ref.namespace)
            self._require_owner(self.cluster.get([ref])[0])
        self.cluster.delete(refs, wait_s=wait_s)

    def patch(self, patches: Sequence[Patch]) -> tuple[JsonObject, ...]:
        for patch in patches:
            self._require(patch.ref.namespace)
            self._require_owner(self.cluster.get([patch.ref])[0])
        return self.cluster.patch(patches)

    def delete_selected(self, select: Select, *, wait_s: float = 0) -> None:
        self._require(select.namespace)
        for item in self.cluster.list(select)[0]:
            if not self.caller.admin:
                self._require_owner(item)
        self.cluster.delete_selected(select, wait_s=wait_s)

    def raw_parts(self, path: str) -> Iterator[bytes]:
        if self.namespaces is not None:
            raise ApiError("cannot read", reason="Forbidden")
        self.cluster.calls.append(("raw", path))
        yield from self.cluster.raw_parts(path)

    def logs(self, pod: Ref, **words: Any) -> str:
        self._require(pod.namespace)
        return self.cluster.logs(pod, **words)

    def log_lines(self, pod: Ref, window: LogWindow, **words: Any) -> Iterator[str]:
        self._require(pod.namespace)
        return self.cluster.log_lines(pod, window, **words)

    def _require(self, namespace: str) -> None:
        if self.namespaces is not None and namespace not in self.namespaces:
            raise ApiError("cannot ask", reason="Forbidden", details=f"not in {namespace}")

    def _require_written(self, namespace: str) -> None:
        """As `_require`. All read published templates, and administrators write them."""
        self._require(namespace)
        if namespace == "pai-templates" and not self.caller.admin:
            raise ApiError("cannot write", reason="Forbidden", details="administrators alone publish templates")

    def _require_owner(self, item: JsonObject | None) -> None:
        owner = (item or {}).get("metadata", {}).get("labels", {}).get("pai-install/user")
        if item is not None and not self.caller.admin and owner != self.caller.label:
            raise ApiError("cannot change", reason="Forbidden", details=f"this is not yours: it belongs to {owner}")


@dataclass
class LiveClients:
    """Clients of the cluster. roles: label of a caller -> namespaces, None for all."""

    cluster: LiveCluster
    roles: Mapping[str, frozenset[str] | None]
    callers: list[Caller] = field(default_factory=list)

    def of(self, caller: Caller) -> ClusterClient:
        self.callers.append(caller)
        return Acting(self.cluster, caller, self.roles[caller.label])

    def own(self) -> ClusterClient:
        return self.cluster
