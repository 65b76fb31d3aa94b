"""The client of the Kubernetes API for every verb, and for programs in the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Lock
from typing import Any, Protocol

from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject

FIELD_MANAGER = "pai-install"


class PatchKind(StrEnum):
    """How a patch is merged."""

    MERGE = "merge"
    STRATEGIC = "strategic"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Select:
    """Objects of some kinds, as kubectl names them ("nodes", "pods", "deployments.apps").

    namespace: "" for all namespaces, and for kinds without one. labels, fields: selectors as kubectl takes them.
    outlines: lists have kind and metadata of each object alone. most: a list ends after so many objects, 0 for none.
    """

    kinds: tuple[str, ...]
    namespace: str = ""
    labels: str = ""
    fields: str = ""
    outlines: bool = False
    most: int = 0


@dataclass(frozen=True, slots=True)
class Patch:
    """A change of one object. body: a mapping, or for JSON a list of operations. part: "status", or the whole."""

    ref: Ref
    body: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    kind: PatchKind = PatchKind.MERGE
    part: str = ""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch. type: ADDED, MODIFIED, DELETED, or BOOKMARK, which has no object.

    BOOKMARK: all existing objects were told. Only a client over HTTP sends it.
    """

    type: str
    object: JsonObject


class Cancellation:
    """Ends a request from another thread, also while nothing is sent."""

    def __init__(self) -> None:
        self._lock, self._cancelled = Lock(), False
        self._end: Callable[[], None] | None = None

    def cancel(self) -> None:
        """Ends the request, or the one that begins later."""
        with self._lock:
            self._cancelled, end = True, self._end
        if end is not None:
            self._call(end)

    def on_cancel(self, end: Callable[[], None]) -> None:
        """Sets what ends the request."""
        with self._lock:
            self._end = end
            late = self._cancelled
        if late:
            self._call(end)

    @staticmethod
    def _call(end: Callable[[], None]) -> None:
        # the request may end by itself at the same time
        with suppress(OSError, ValueError, RuntimeError):
            end()


@dataclass(frozen=True, slots=True)
class LogWindow:
    """The part of a log to read. tail: number of last lines, -1 for all. since: RFC 3339, "" for all. follow: until
    the end of the container, or until it is cancelled.
    """

    tail: int = -1
    since: str = ""
    follow: bool = False
    cancellation: Cancellation | None = None


class EvictionOutcome(StrEnum):
    """EVICTED: accepted, the pod is about to end. GONE: there was none. BLOCKED: a budget forbids it for now."""

    EVICTED = "evicted"
    GONE = "gone"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Eviction:
    """The result of an eviction request. message: reason of a refusal by the API server."""

    pod: Ref
    outcome: EvictionOutcome
    message: str = ""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a service account, and until when it lasts, as the API server writes times. It is in no repr."""

    text: str = field(repr=False)
    until: str


@dataclass(frozen=True, slots=True)
class Impersonation:
    """A user that a request impersonates, with its groups. uid: "" for none."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""


# the reason of a request that an API server took and did not answer: it may have been carried out
NO_ANSWER = "NoAnswer"


class ApiError(PaiError):
    """The API server refused. reason: its reason code, such as "Conflict", "Forbidden", or ""."""

    def __init__(self, message: str, *, reason: str = "", details: str = "", remedy: str = "") -> None:
        super().__init__(message, code="api-request-refused", details=details, remedy=remedy)
        self.reason = reason


class NoClusterError(PaiError):
    """No control plane could be asked. down: host -> why."""

    def __init__(self, down: Mapping[str, str]) -> None:
        super().__init__(
            "no control plane answers",
            code="no-control-plane-answers",
            details="\n".join(f"{host}: {why}" for host, why in down.items()),
            remedy="pai-install status",
            exit_code=ExitCode.UNREACHABLE,
        )
        self.down = dict(down)


class ClusterClient(Protocol):
    """Reads and changes a cluster.

    Every method raises NoClusterError if no control-plane node responds, and ApiError if the API server refuses.
    """

    def get(self, refs: Sequence[Ref]) -> tuple[JsonObject | None, ...]:
        """Returns the objects in the order of `refs`, with None for missing ones."""
        ...

    def list(self, *selects: Select) -> tuple[tuple[JsonObject, ...], ...]:
        """The objects of each selection."""
        ...

    def raw(self, path: str) -> str:
        """Returns the API server's response for a path, such as "/metrics"."""
        ...

    def raw_parts(self, path: str) -> Iterator[bytes]:
        """As `raw`, in parts as they come: all pods may have 100 MiB. Raises ApiError "NoAnswer" if they end early."""
        ...

    def watch(self, select: Select) -> Iterator[WatchEvent]:
        """Yields the existing objects as ADDED, then each change, also after a lost connection. Close it to stop.

        All objects have one kind. Raises ApiError "Expired" if changes were missed.
        """
        ...

    def apply(self, objects: Sequence[JsonObject], *, force: bool = False) -> tuple[JsonObject, ...]:
        """Applies objects server-side as FIELD_MANAGER and returns their new state.

        force: take over fields of other managers. Without it, such a field raises ApiError "Conflict".
        """
        ...

    def create(self, objects: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
        """Creates objects. An existing one raises ApiError "AlreadyExists"."""
        ...

    def dry_run(self, objects: Sequence[JsonObject], identity: Impersonation | None = None) -> None:
        """Asks whether an identity, or the client itself, may create objects. Nothing is created."""
        ...

    def patch(self, patches: Sequence[Patch]) -> tuple[JsonObject, ...]:
        """Changes objects in order and returns their new state. Stops at the first refusal."""
        ...

    def delete(self, refs: Sequence[Ref], *, wait_s: float = 0) -> None:
        """Deletes objects and ignores missing ones. Waits for the end of the deletion if wait_s is above 0."""
        ...

    def delete_selected(self, select: Select, *, wait_s: float = 0) -> None:
        """Deletes all objects of a selection with their dependents."""
        ...

    def wait(self, select: Select | Sequence[Ref], condition: str, timeout_s: float) -> bool:
        """Whether all objects came to a condition in time.

        condition: as `kubectl wait --for` takes it, e.g. "condition=Ready", "delete", "jsonpath={.status.phase}=Done".
        """
        ...

    def logs(self, pod: Ref, *, container: str = "", tail: int = -1, previous: bool = False) -> str:
        """Returns the last `tail` lines of a container's log, or all lines for -1."""
        ...

    def logs_of(self, select: Select, *, tail: int = -1) -> Mapping[str, str]:
        """Returns pod -> log of its containers, for a selection of at most 2,000 pods. Pods without a log
        are omitted.
        """
        ...

    def log_lines(self, pod: Ref, window: LogWindow, *, container: str = "") -> Iterator[str]:
        """Yields the lines of a container, by default the pod's main one. Close it to stop.

        Several threads may read at a time.
        """
        ...

    def evict(self, pods: Sequence[Ref], *, grace_s: int | None = None) -> tuple[Eviction, ...]:
        """Asks for each pod to be evicted, within its disruption budgets. grace_s: None for the pod's own."""
        ...

    def request_token(self, account: Ref, lasting_s: int, bound: JsonObject) -> Token:
        """Returns a service account token. bound: an object from the cluster. The token ends with its deletion."""
        ...
