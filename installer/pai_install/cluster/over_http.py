"""A client of the Kubernetes API over HTTP: connections of one process, for any number of identities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pai_install.cluster import http_changes, http_logs
from pai_install.cluster.client import (
    NO_ANSWER,
    ApiError,
    Eviction,
    Impersonation,
    LogWindow,
    Patch,
    Select,
    Token,
    WatchEvent,
)
from pai_install.cluster.conditions import GONE, met
from pai_install.cluster.credentials import Credentials, NoToken, TokenFile
from pai_install.cluster.http import ApiRequest, Connections, api_server
from pai_install.cluster.http_api import Api
from pai_install.cluster.resources import ApiResources
from pai_install.cluster.watch import changes
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject

_APPLY = "application/apply-patch+yaml"


def with_token_file(url: str, authority: Path, token: Path) -> HttpClient:
    """A client with the token of a service account, which is read again when its file changes."""
    return HttpClient(Connections([api_server(url, authority=authority)]), TokenFile(token))


class HttpClient:
    """See ClusterClient for results and errors of each method. Several threads may use one.

    A request of several objects stops at the first refusal.
    """

    def __init__(self, connections: Connections, credentials: Credentials | None = None) -> None:
        self._api = Api(connections, credentials or NoToken(), ApiResources())

    def with_identity(self, identity: Impersonation) -> HttpClient:
        """A client on the same connections that acts in the name of another, by impersonation."""
        return self._with(replace(self._api, identity=identity))

    def with_credentials(self, credentials: Credentials) -> HttpClient:
        """A client on the same connections with another token. Raises ValueError where they have a certificate."""
        if self._api.connections.certified:
            raise ValueError("the client certificate of the connections would count instead of the token")
        return self._with(replace(self._api, credentials=credentials, identity=None))

    def _with(self, api: Api) -> HttpClient:
        found = HttpClient(api.connections)
        found._api = api
        return found

    def close(self) -> None:
        """Ends all connections, also those of other identities."""
        self._api.connections.close()

    def get(self, refs: Sequence[Ref]) -> tuple[JsonObject | None, ...]:
        """Returns the objects, with None for missing ones."""
        return tuple(http_changes.read(self._api, ref) for ref in refs)

    def list(self, *selects: Select) -> tuple[tuple[JsonObject, ...], ...]:
        """The objects of each selection."""
        return tuple(
            tuple(item for kind in select.kinds for item in self._api.items(self._api.kind(kind), select)[0])
            for select in selects
        )

    def raw(self, path: str) -> str:
        """A path of the API server."""
        return self._api.send(ApiRequest(f"get {path}", path, accept="*/*")).body.decode(errors="replace")

    def raw_parts(self, path: str) -> Iterator[bytes]:
        """A path of the API server, in parts."""
        with self._api.stream(ApiRequest(f"get {path}", path, accept="*/*")) as parts:
            try:
                yield from parts
            except ConnectionError as error:
                words = f"cannot get {path}: the connection ended"
                raise ApiError(words, reason=NO_ANSWER, details=str(error)) from error

    def watch(self, select: Select) -> Iterator[WatchEvent]:
        """The objects and each change. Continues by itself after a lost connection."""
        (kind,) = select.kinds
        yield from changes(self._api, self._api.kind(kind), select)

    def apply(self, objects: Sequence[JsonObject], *, force: bool = False) -> tuple[JsonObject, ...]:
        """Server-side apply."""
        query = (http_changes.MANAGER, ("force", str(force).lower()))
        return tuple(self._api.change("apply", item, query, _APPLY) for item in objects)

    def create(self, objects: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
        """Makes new objects."""
        return tuple(http_changes.created(self._api, item) for item in objects)

    def dry_run(self, objects: Sequence[JsonObject], identity: Impersonation | None = None) -> None:
        """Asks whether an identity may create objects."""
        api = replace(self._api, identity=identity) if identity else self._api
        for item in objects:
            api.change("create", item, (http_changes.MANAGER, ("dryRun", "All")), reads=True)

    def patch(self, patches: Sequence[Patch]) -> tuple[JsonObject, ...]:
        """Changes objects in order."""
        return tuple(http_changes.patched(self._api, change) for change in patches)

    def delete(self, refs: Sequence[Ref], *, wait_s: float = 0) -> None:
        """Deletes objects."""
        http_changes.delete(self._api, [http_changes.ObservedObject(ref) for ref in refs], "Background", wait_s)

    def delete_selected(self, select: Select, *, wait_s: float = 0) -> None:
        """Deletes a selection. Raises ValueError for an unlimited selection."""
        if not (select.labels or select.fields):
            raise ValueError("delete_selected needs labels or fields")
        http_changes.delete(self._api, http_changes.selected(self._api, select), "Foreground", wait_s)

    def wait(self, select: Select | Sequence[Ref], condition: str, timeout_s: float) -> bool:
        """Whether all objects came to a condition in time."""
        met(None, condition)  # refuses an unknown form before the first request
        if isinstance(select, Select):
            known = http_changes.selected(self._api, select)
            # For kubectl wait, too, an empty selection succeeds with the condition delete alone.
            return bool(known or condition == GONE) and http_changes.settled(self._api, known, condition, timeout_s)
        if condition != GONE and None in (found := self.get(select)):
            missing = select[found.index(None)]
            raise ApiError(f"cannot wait for {missing}: NotFound", reason="NotFound", details="it does not exist")
        return http_changes.settled(
            self._api, [http_changes.ObservedObject(ref) for ref in select], condition, timeout_s
        )

    def logs(self, pod: Ref, *, container: str = "", tail: int = -1, previous: bool = False) -> str:
        """A container's log."""
        return http_logs.log(self._api, pod, container, tail, previous=previous)

    def logs_of(self, select: Select, *, tail: int = -1) -> Mapping[str, str]:
        """Returns pod -> log. Readable logs are returned even if another pod has no log yet."""
        return http_logs.logs_of(self._api, self.list(select)[0], tail)

    def log_lines(self, pod: Ref, window: LogWindow, *, container: str = "") -> Iterator[str]:
        """A container's log line by line."""
        yield from http_logs.log_lines(self._api, pod, container, window)

    def evict(self, pods: Sequence[Ref], *, grace_s: int | None = None) -> tuple[Eviction, ...]:
        """Asks for evictions."""
        return tuple(http_changes.evicted(self._api, pod, grace_s) for pod in pods)

    def request_token(self, account: Ref, lasting_s: int, bound: JsonObject) -> Token:
        """A token of a service account."""
        return http_changes.new_token(self._api, account, lasting_s, bound)
