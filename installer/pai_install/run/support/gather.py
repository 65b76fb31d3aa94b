"""Collects data of machines and cluster for a support bundle, and lists unreachable ones."""

from __future__ import annotations

import base64
import binascii
import json
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from pai_install.agents.common.values import parse_object
from pai_install.cluster.client import ClusterClient, Select
from pai_install.engine.base import Engine, EventKind, RunRequest
from pai_install.errors import PaiError
from pai_install.kube.objects import JsonObject, child, text
from pai_install.plan.inventory import connection, groups
from pai_install.plan.model import Inventory
from pai_install.site.model import Site
from pai_install.system.plain import one_line

PLAYBOOK = "support.yml"
# bytes of one machine's texts at most, and of all machines' together
LARGEST_MACHINE, LARGEST_OF_ALL = 2_000_000, 40_000_000
_LARGEST_ANSWER = 8 << 20
_KINDS = ("nodes", "pods", "events", "deployments.apps", "daemonsets.apps", "statefulsets.apps", "persistentvolumes")
# of an object: what says how it is; specifications of pods may hold secrets in their environment
_KEPT = ("apiVersion", "kind", "status", "type", "reason", "message", "count", "lastTimestamp", "involvedObject")
_KEPT_METADATA = ("name", "namespace", "labels", "creationTimestamp", "deletionTimestamp", "ownerReferences")
_LOG_LINES = 500


@dataclass
class Collected:
    """files: path in the bundle -> text. missing: unavailable data -> cause."""

    files: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def from_machines(
    engine: Engine, site: Site, timeout_s: float, found: Collected, clock: Callable[[], float] = time.monotonic
) -> None:
    """Adds the texts of every present machine that answers within timeout_s seconds."""
    hosts = tuple(machine.hostname for machine in site.present_machines)
    connections = {machine.hostname: connection(machine) for machine in site.present_machines}
    inventory = Inventory(groups(site), {}, connections)
    # Each machine gets a share, so that a thousand machines do not fill the memory.
    largest = min(LARGEST_MACHINE, LARGEST_OF_ALL // len(hosts))
    variables = {"pai_support_largest": largest}
    request = RunRequest(PLAYBOOK, inventory, limit=hosts, extra_vars=variables)
    answered, deadline = set[str](), clock() + timeout_s
    try:
        with closing(engine.run(request)) as events:
            for event in events:
                if event.host and "packed" in event.result:
                    answered.add(event.host)
                    found.files.update(_unpacked(event.host, str(event.result["packed"]), largest))
                elif event.kind in (EventKind.FAILED, EventKind.UNREACHABLE):
                    found.missing[event.host] = one_line(str(event.result.get("msg", event.kind.value)))[:400]
                # A silent machine must not delay the bundle of the others.
                if clock() > deadline:
                    break
    except PaiError as error:
        found.missing["machines"] = error.message
    late = f"no answer within {timeout_s:.0f} s"
    found.missing.update({host: late for host in hosts if host not in answered and host not in found.missing})


def _unpacked(host: str, packed: str, largest: int) -> dict[str, str]:
    """Returns a machine's texts. Names and sizes are not trusted."""
    try:
        expander = zlib.decompressobj()
        # The data comes from a machine. A few bytes can expand to gigabytes, so the output is limited.
        data = expander.decompress(base64.b64decode(packed), min(_LARGEST_ANSWER, 8 * largest))
        texts = parse_object(data, max_size=_LARGEST_ANSWER)
    except (binascii.Error, zlib.error, ValueError) as error:
        return {f"machines/{host}/unreadable.txt": f"{error}\n"}
    safe = {"".join(c if c.isalnum() or c in "-._" else "-" for c in str(name)): str(it) for name, it in texts.items()}
    return {f"machines/{host}/{name.lstrip('.')[:80]}": it for name, it in safe.items() if name.lstrip(".")}


def from_cluster(cluster: ClusterClient, namespaces: tuple[str, ...], found: Collected) -> None:
    """Adds the state of objects, and logs of the system's pods."""
    for kind in _KINDS:
        try:
            (objects,) = cluster.list(Select((kind,)))
        except PaiError as error:
            found.missing[f"cluster {kind}"] = error.message
            continue
        shown = [_state(item) for item in objects]
        found.files[f"cluster/{kind}.json"] = json.dumps(shown, indent=1, default=dict) + "\n"
    for namespace in namespaces:
        try:
            logs = cluster.logs_of(Select(("pods",), namespace), tail=_LOG_LINES)
        except PaiError as error:
            found.missing[f"logs of {namespace}"] = error.message
            continue
        found.files.update({f"cluster/logs/{namespace}/{pod}.txt": log + "\n" for pod, log in logs.items()})


def _state(item: JsonObject) -> Mapping[str, Any]:
    metadata = child(item, "metadata")
    kept = {key: item[key] for key in _KEPT if key in item}
    node = text(child(item, "spec").get("nodeName"))
    named = {key: metadata[key] for key in _KEPT_METADATA if key in metadata}
    return {**kept, "metadata": named, **({"nodeName": node} if node else {})}
