"""Requests to the Kubernetes API in the name of one identity: objects, kinds, pages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pai_install.agents.common.values import InvalidJsonError, parse_object
from pai_install.cluster.client import ApiError, Impersonation, Select
from pai_install.cluster.credentials import Credentials, identity_headers
from pai_install.cluster.http import JSON, LARGEST_ANSWER, ApiRequest, ApiResponse, Connections
from pai_install.cluster.http_errors import not_json, refusal, too_large, unknown_kind
from pai_install.cluster.resources import ApiResource, ApiResources, parse_discovery
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, rows, text
from pai_install.system.plain import plain

# the namespace of an object that names none, as for kubectl
_DEFAULT_NAMESPACE = "default"
_PAGE = 500
_MOST_PAGES = 2000
# 10,000 pods have some 10 million values
_MOST_VALUES = 1 << 30
_CHANGE_TIMEOUT_S = 300.0
_OUTLINES = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass(frozen=True, slots=True)
class Api:
    """The API of a cluster for one identity. resources: shared by all identities."""

    connections: Connections
    credentials: Credentials
    resources: ApiResources
    identity: Impersonation | None = None

    def send(self, request: ApiRequest) -> ApiResponse:
        """The answer. Raises ApiError for a refusal."""
        answer = self.answer(request)
        if not answer.ok:
            raise refusal(answer.host, request.what, answer.status, answer.body)
        return answer

    def answer(self, request: ApiRequest) -> ApiResponse:
        """The answer, which may be a refusal."""
        return self.connections.send(request, tuple(identity_headers(self.credentials, self.identity)))

    def object(self, request: ApiRequest) -> JsonObject:
        """The object that the API server returns, with safe texts."""
        return safe_object(self.send(request), request.what)

    @contextmanager
    def stream(self, request: ApiRequest) -> Iterator[Iterator[bytes]]:
        """Yields the parts of the answer as they come. Raises ApiError, and ConnectionError when it breaks off."""
        headers = tuple(identity_headers(self.credentials, self.identity))
        with self.connections.stream(request, headers) as (head, parts):
            if not head.ok:
                raise refusal(head.host, request.what, head.status, head.body)
            yield parts

    def kind(self, name: str) -> ApiResource:
        """The kind that kubectl calls so. Raises ApiError "NoSuchKind"."""
        found = self.resources.named(name, self._discovered)
        if found is None:
            raise unknown_kind(name)
        return found

    def place(self, ref: Ref, *parts: str) -> str:
        """The path of an object, or of a part of it."""
        kind = self.kind(ref.kind)
        return kind.path(ref.namespace or _DEFAULT_NAMESPACE, ref.name, *parts)

    def change(
        self, verb: str, item: JsonObject, query: Sequence[tuple[str, str]], kind: str = JSON, *, reads: bool = False
    ) -> JsonObject:
        """Creates or applies an object and returns its new state. reads: a dry run."""
        resource = self.resources.of(item, self._discovered)
        if resource is None:
            raise unknown_kind(f"{text(item.get('kind'))} ({text(item.get('apiVersion'))})")
        metadata = child(item, "metadata")
        namespace, name = text(metadata.get("namespace")) or _DEFAULT_NAMESPACE, text(metadata.get("name"))
        applies = verb == "apply"
        request = ApiRequest(
            f"{verb} {resource.full_name} {name or text(metadata.get('generateName'))}"
            + (f" in {namespace}" if resource.namespaced else ""),
            resource.path(namespace, name if applies else ""),
            "PATCH" if applies else "POST",
            tuple(query),
            json.dumps(item, default=dict).encode(),
            kind,
            reads=reads,
            timeout_s=_CHANGE_TIMEOUT_S,
        )
        return self.object(request)

    def pages(self, kind: ApiResource, select: Select) -> Iterator[JsonObject]:
        """Yields a list page by page; each has the version of the whole list in its metadata."""
        further, query, found = "", selectors(select), 0
        accept = _OUTLINES if select.outlines else JSON
        for _ in range(_MOST_PAGES):
            size = min(_PAGE, select.most - found) if select.most else _PAGE
            more = (("limit", str(size)), *((("continue", further),) if further else ()))
            place = kind.path(select.namespace)
            try:
                page = self.object(ApiRequest(f"list {kind.full_name}", place, query=(*query, *more), accept=accept))
            except ApiError as error:
                # etcd drops old versions after minutes, so only a further page of a list can expire.
                if not (further and error.reason == "Expired"):
                    raise
                raise _ExpiredListError from error
            yield page
            further, found = text(child(page, "metadata").get("continue")), found + len(rows(page.get("items")))
            if not further or 0 < select.most <= found:
                return
        raise too_large(f"list {kind.full_name}", LARGEST_ANSWER)

    def items(self, kind: ApiResource, select: Select) -> tuple[tuple[JsonObject, ...], str]:
        """The objects of a list, and its version."""
        try:
            pages = tuple(self.pages(kind, select))
        except _ExpiredListError:
            pages = (self._at_once(kind, select),)
        version = text(child(pages[0], "metadata").get("resourceVersion"))
        return tuple(item for page in pages for item in typed_items(page, kind)), version

    def whole_list(self, kind: ApiResource, select: Select) -> Iterator[JsonObject]:
        """Yields a list page by page. A list that expires meanwhile comes again as one page."""
        try:
            yield from self.pages(kind, select)
        except _ExpiredListError:
            yield self._at_once(kind, select)

    def _at_once(self, kind: ApiResource, select: Select) -> JsonObject:
        """A list that takes longer than the database keeps old versions."""
        return self.object(ApiRequest(f"list {kind.full_name}", kind.path(select.namespace), query=selectors(select)))

    def _discovered(self) -> Iterator[ApiResource]:
        """All kinds. They are the same for everybody, so it asks as itself and not as an identity that it acts for."""
        own = replace(self, identity=None)
        for path in ("/api", "/apis"):
            request = ApiRequest("list the kinds of the cluster", path, accept=_DISCOVERY)
            yield from parse_discovery(_parsed(own.send(request), request.what))


class _ExpiredListError(Exception):
    """The next page of a list is no longer available."""


def selectors(select: Select) -> tuple[tuple[str, str], ...]:
    """The query for a selection."""
    found = (("labelSelector", select.labels), ("fieldSelector", select.fields))
    return tuple((name, value) for name, value in found if value)


def safe_object(answer: ApiResponse, what: str) -> JsonObject:
    """The object in an answer, with safe texts. Raises PaiError for anything else."""
    found = _parsed(answer, what)
    for item in (found, *rows(found.get("items"))):
        _drop_fields(item)
    safe: JsonObject = plain(found)
    return safe


def typed_items(page: JsonObject, kind: ApiResource) -> Iterator[JsonObject]:
    """The items of a page with their kind."""
    return (_typed(item, kind) for item in rows(page.get("items")))


def _typed(item: JsonObject, kind: ApiResource) -> JsonObject:
    """The item of a list with its kind, which the API server leaves out there. An outline has another kind."""
    return {**item, "apiVersion": kind.api, "kind": kind.kind}


def _drop_fields(item: JsonObject) -> None:
    """Drops what kubectl does not show either: who owns which field. It is larger than many objects."""
    metadata = item.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)


def _parsed(answer: ApiResponse, what: str) -> JsonObject:
    try:
        return parse_object(answer.body, max_size=LARGEST_ANSWER, max_values=_MOST_VALUES)
    except InvalidJsonError as error:
        raise not_json(answer.host, what, error) from error
