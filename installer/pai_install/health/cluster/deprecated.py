"""Deprecated APIs that are in use, by the API server's own count of requests, with the objects written through them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pai_install.cluster.client import ApiError, ClusterClient, Select
from pai_install.kube.objects import JsonObject, child, rows, text
from pai_install.plan.observation import ApiUse

METRICS = "/metrics"
_REQUESTED = re.compile(r"^apiserver_requested_deprecated_apis\{(?P<labels>[^}]*)\} 1$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_SHOWN = 10


def deprecated_uses(cluster: ClusterClient) -> tuple[ApiUse, ...]:
    """Returns requests of deprecated APIs since the start of the responding API server. Raises as ClusterClient."""
    requests = requested(cluster.raw(METRICS))
    return tuple(
        ApiUse(use.group, use.version, use.resource, use.removed, tuple(_users(cluster, use))) for use in requests
    )


def requested(metrics: str) -> tuple[ApiUse, ...]:
    """The deprecated APIs in the text of /metrics, each once."""
    found: dict[tuple[str, str, str], ApiUse] = {}
    for match in _REQUESTED.finditer(metrics):
        labels = dict(_LABEL.findall(match["labels"]))
        key = (labels.get("group", ""), labels.get("version", ""), labels.get("resource", ""))
        found.setdefault(key, ApiUse(*key, removed=labels.get("removed_release", "")))
    return tuple(found[key] for key in sorted(found))


def _users(cluster: ClusterClient, use: ApiUse) -> Iterator[str]:
    """Yields the objects that were written with that API, and their writers. Yields nothing for a removed API."""
    wanted = f"{use.group}/{use.version}" if use.group else use.version
    try:
        (objects,) = cluster.list(Select((f"{use.resource}.{use.version}.{use.group}".rstrip("."),)))
    except ApiError:
        return
    lines = [line for item in objects for line in _written(item, wanted)]
    yield from lines[:_SHOWN]
    if len(lines) > _SHOWN:
        yield f"and {len(lines) - _SHOWN} more"


def _written(item: JsonObject, wanted: str) -> Iterator[str]:
    metadata = child(item, "metadata")
    namespace = text(metadata.get("namespace"))
    name = f"{namespace}/{text(metadata.get('name'))}" if namespace else text(metadata.get("name"))
    fields = rows(metadata.get("managedFields"))
    writers = [text(row.get("manager")) for row in fields if row.get("apiVersion") == wanted]
    if writers:
        yield f"{name}: written by {', '.join(dict.fromkeys(writers))}"
