"""What steps may do to the cluster: each verb of a ClusterCall is a function here, arguments are plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pai_install.cluster.client import ClusterClient, Patch, PatchKind
from pai_install.cluster.model import Ref
from pai_install.plan.model import ClusterCall

Arguments = Mapping[str, Any]


def make_call(cluster: ClusterClient, call: ClusterCall) -> str:
    """Does it and says what was done. Raises PaiError when the cluster refuses or does not answer."""
    return VERBS[call.verb](cluster, call.arguments)


def _patch(cluster: ClusterClient, arguments: Arguments) -> str:
    """kind, name, namespace (where it has one), body: a merge patch."""
    ref = Ref(arguments["kind"], arguments["name"], arguments.get("namespace", ""))
    cluster.patch([Patch(ref, arguments["body"], PatchKind.MERGE)])
    return f"patched {ref}"


VERBS: Mapping[str, Callable[[ClusterClient, Arguments], str]] = {"patch": _patch}
