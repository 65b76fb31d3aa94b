"""The way back to the virtual clusters with which the scheduler last came up. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pai_install.kube.objects import JsonObject, child, text, words
from pai_install.schedulers.compile import labels_of, objects_of
from pai_install.schedulers.queue_status import ObjectName, name_of
from pai_install.scheduling.model import Scheduling

# as the add-on of that name labels its objects: without them they would no longer count as ours
LABELS = {"app.kubernetes.io/managed-by": "pai-install", "pai-install/addon": "virtual_clusters"}


def restored(good: Scheduling) -> list[dict[str, Any]]:
    """The objects as the add-on would apply them."""
    return [_labelled(entry) for entry in objects_of(good)]


def _labelled(entry: Mapping[str, Any]) -> dict[str, Any]:
    metadata = entry["metadata"]
    return {**entry, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **LABELS}}}


def leftovers(good: Scheduling, tried: Scheduling) -> list[ObjectName]:
    """Objects that only the configuration made which was tried; the last one first."""
    kept = {name_of(entry) for entry in objects_of(good)}
    return [name for name in map(name_of, reversed(objects_of(tried))) if name not in kept]


def relabelled(good: Scheduling, nodes: Iterable[JsonObject]) -> dict[str, dict[str, str]]:
    """Node -> the labels for the scheduler that it has otherwise now; nodes without such are left out."""
    seen = {text(child(node, "metadata").get("name")): words(child(node, "metadata", "labels")) for node in nodes}
    found = {
        name: {key: value for key, value in labels.items() if seen[name].get(key) != value}
        for name, labels in labels_of(good).items()
        if name in seen
    }
    return {name: labels for name, labels in found.items() if labels}
