"""What virtual clusters a cluster was given last, kept there: so that a change can be told before it is made. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pai_install.agents.common.values import parse_object
from pai_install.scheduling.model import BACKENDS, Level, Scheduling, Share, Supply, UnqueuedLimit, VirtualCluster

KEPT, KEPT_IN = "pai-install-virtual-clusters", "kube-system"
_KEY = "virtual-clusters.json"
# bytes of the file that holds such a ConfigMap
_MAX_SIZE = 8 * 1024 * 1024


def kept_object(scheduling: Scheduling) -> dict[str, Any]:
    """A ConfigMap with the whole value; nothing in it is secret."""
    supply = {sku: asdict(one) for sku, one in scheduling.supply.items()}
    clusters = [_given(asdict(cluster)) for cluster in scheduling.clusters]
    text = json.dumps(_given({**asdict(scheduling), "supply": supply, "clusters": clusters}))
    metadata = {"name": KEPT, "namespace": KEPT_IN}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_KEY: text}}


def _given(content: Mapping[str, Any]) -> dict[str, Any]:
    """Without keys that say nothing. So a new one changes no text of sites without it, and former releases read it."""
    return {key: value for key, value in content.items() if value is not None}


def kept_text(scheduling: Scheduling) -> str:
    """The same for a file."""
    return json.dumps(kept_object(scheduling), indent=2) + "\n"


def kept_in_text(text: str) -> Scheduling | None:
    """What such a file says; None where it says nothing that is understood."""
    try:
        return kept_of(parse_object(text, max_size=_MAX_SIZE))
    except ValueError:
        return None


def kept_of(found: Mapping[str, Any] | None) -> Scheduling | None:
    """What the ConfigMap says; None where there is none, or one that says nothing that is understood."""
    try:
        return _scheduling(parse_object((found or {})["data"][_KEY], max_size=_MAX_SIZE))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _scheduling(values: Mapping[str, Any]) -> Scheduling:
    if values["backend"] not in BACKENDS:
        raise ValueError(values["backend"])
    supply = {sku: Supply(**{**row, "machines": tuple(row["machines"])}) for sku, row in values["supply"].items()}
    clusters = tuple(_cluster(row) for row in values["clusters"])
    levels = tuple(Level(**row) for row in values["levels"])
    unqueued = UnqueuedLimit(**values["unqueued"]) if values.get("unqueued") else None
    share = values.get("device_share")
    return Scheduling(values["backend"], supply, clusters, levels, values.get("block"), unqueued, share)


def _cluster(row: Mapping[str, Any]) -> VirtualCluster:
    # JSON has no tuples, and a list would never equal the value that the site gives.
    lists = {key: tuple(row[key]) for key in ("pinned", "groups", "namespaces")}
    return VirtualCluster(**{**row, **lists, "shares": tuple(Share(**share) for share in row["shares"])})
