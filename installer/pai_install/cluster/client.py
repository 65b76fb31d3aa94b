"""The client of the Kubernetes API for every verb. See over_ssh.py for its transport."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
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
    """

    kinds: tuple[str, ...]
    namespace: str = ""
    labels: str = ""
    fields: str = ""


@dataclass(frozen=True, slots=True)
class Patch:
    """A change of one object. body: a mapping, or for JSON a list of operations. part: "status", or the whole."""

    ref: Ref
    body: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    kind: PatchKind = PatchKind.MERGE
    part: str = ""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch. type: ADDED, MODIFIED or DELETED."""

    type: str
    object: JsonObject


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """How a command in a container ended."""

    returncode: int
    stdout: str
    stderr: str


class EvictionOutcome(StrEnum):
    """EVICTED: accepted, the pod is about to end. GONE: there was none. BLOCKED: a budget forbids it for now."""

    EVICTED = "evicted"
    GONE = "gone"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Eviction:
    """The result of a request to evict a pod. message: what the API server said, where it refused."""

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
    """A user that a request impersonates, with its groups."""

    user: str
    groups: tuple[str, ...] = ()


# the reason of a request that an API server took and did not answer: it may have been carried out
NO_ANSWER = "NoAnswer"


class ApiError(PaiError):
    """The API server refused. reason: its reason code, e.g. "Conflict", "Forbidden"; "" where it gave none."""

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
    """Asks and changes a cluster. What takes several things needs one round trip for all of them.

    Every method raises NoClusterError when no control plane answers, and ApiError when the API server refuses.
    """

    def get(self, refs: Sequence[Ref]) -> tuple[JsonObject | None, ...]:
        """The objects in the order of `refs`; None for one that does not exist."""
        ...

    def list(self, *selects: Select) -> tuple[tuple[JsonObject, ...], ...]:
        """The objects of each selection."""
        ...

    def raw(self, path: str) -> str:
        """What the API server itself says at a path, e.g. "/metrics"."""
        ...

    def watch(self, select: Select) -> Iterator[WatchEvent]:
        """What is there, as ADDED, then each change as it happens. Ends when the API server ends it; close it to stop.

        Of one kind only.
        """
        ...

    def apply(self, objects: Sequence[JsonObject], *, force: bool = False) -> tuple[JsonObject, ...]:
        """Server-side apply as FIELD_MANAGER; gives the objects as they are then.

        force: take over fields that another manager owns; without it such a field is an ApiError "Conflict".
        """
        ...

    def create(self, objects: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
        """Makes new objects; one that exists is an ApiError "AlreadyExists"."""
        ...

    def dry_run(self, objects: Sequence[JsonObject], identity: Impersonation | None = None) -> None:
        """Asks whether an identity, or the client itself, may create objects. Nothing is created."""
        ...

    def patch(self, patches: Sequence[Patch]) -> tuple[JsonObject, ...]:
        """Changes objects in order, stopping at the first that is refused; gives them as they are then."""
        ...

    def delete(self, refs: Sequence[Ref], *, wait_s: float = 0) -> None:
        """Deletes objects, those that do not exist included; waits until they are gone where wait_s is above 0."""
        ...

    def delete_selected(self, select: Select, *, wait_s: float = 0) -> None:
        """Deletes all objects of a selection, with what they own."""
        ...

    def wait(self, select: Select | Sequence[Ref], condition: str, timeout_s: float) -> bool:
        """Whether all objects came to a condition in time.

        condition: as `kubectl wait --for` takes it, e.g. "condition=Ready", "delete", "jsonpath={.status.phase}=Done".
        """
        ...

    def exec(
        self, pod: Ref, argv: Sequence[str], *, container: str = "", stdin: str = "", timeout_s: float = 60
    ) -> CommandOutput:
        """Runs a command in a container of a pod (its first one where none is named). Its failure is an answer."""
        ...

    def logs(self, pod: Ref, *, container: str = "", tail: int = -1, previous: bool = False) -> str:
        """A container's log; the last `tail` lines, all for -1."""
        ...

    def logs_of(self, select: Select, *, tail: int = -1) -> Mapping[str, str]:
        """Pod -> log of its containers, of the pods in a selection (at most 2,000); pods without a log are left out."""
        ...

    def follow(self, pod: Ref, *, container: str = "", tail: int = -1) -> Iterator[str]:
        """A container's log line by line as it grows, until the container ends; close it to stop."""
        ...

    def evict(self, pods: Sequence[Ref], *, grace_s: int | None = None) -> tuple[Eviction, ...]:
        """Asks for each pod to be evicted, within its disruption budgets. grace_s: None for the pod's own."""
        ...

    def request_token(self, account: Ref, lasting_s: int, bound: JsonObject) -> Token:
        """A token of a service account. bound: an object as the cluster gave it; when it is deleted, the token ends."""
        ...
