"""The way back to the virtual clusters with which the scheduler last came up. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pai_install.cluster.client import Patch
from pai_install.cluster.model import Ref
from pai_install.cluster.objects import JsonObject, child, words
from pai_install.scheduling.compile import labels_of, objects_of
from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.standing import ref_of

# as the add-on of that name labels its objects: without them they would no longer count as ours
LABELS = {"app.kubernetes.io/managed-by": "pai-install", "pai-install/addon": "virtual_clusters"}


def restored(good: Scheduling) -> list[dict[str, Any]]:
    """The objects as the add-on would apply them."""
    return [_labelled(entry) for entry in objects_of(good)]


def _labelled(entry: Mapping[str, Any]) -> dict[str, Any]:
    metadata = entry["metadata"]
    return {**entry, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **LABELS}}}


def leftovers(good: Scheduling, tried: Scheduling) -> list[Ref]:
    """Objects that only the configuration made which was tried; the last one first."""
    kept = {ref_of(entry) for entry in objects_of(good)}
    return [ref for ref in map(ref_of, reversed(objects_of(tried))) if ref not in kept]


def relabelled(good: Scheduling, nodes: Iterable[JsonObject]) -> Iterator[Patch]:
    """A patch for each node whose labels for the scheduler are other ones."""
    wanted = labels_of(good)
    for node in nodes:
        metadata = child(node, "metadata")
        seen = words(metadata.get("labels"))
        labels = wanted.get(str(metadata.get("name")), {})
        changed = {key: value for key, value in labels.items() if seen.get(key) != value}
        if changed:
            yield Patch(Ref("node", str(metadata["name"])), {"metadata": {"labels": changed}})
