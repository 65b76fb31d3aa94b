"""HiveD of a cluster that runs, with other machines and virtual clusters for the time of a measurement.

It divides machines by a configuration that it reads when it starts: so its configuration is another one meanwhile, and
so are the policies that know its virtual clusters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pai_install.schedulers.compile import objects_of
from pai_install.schedulers.hived.compile import NAMESPACE
from pai_install.scheduling.model import Scheduling
from tests.e2e.conftest import Cluster
from tests.perf.made_objects import replace

Object = dict[str, Any]

_WHERE = f"--namespace={NAMESPACE}"
_KINDS = "configmaps,validatingadmissionpolicies,validatingadmissionpolicybindings"


@contextmanager
def divided(cluster: Cluster, scheduling: Scheduling) -> Iterator[None]:
    """HiveD has this site's virtual clusters, and the cluster's own again afterwards."""
    found = json.loads(cluster.kubectl("get", _KINDS, _WHERE, "--output=json"))["items"]
    wanted = [it for it in objects_of(scheduling) if _name(it) in {_name(one) for one in found}]
    before = [as_it_was(it) for it in found if _name(it) in {_name(one) for one in wanted}]
    try:
        replace(cluster, wanted)
        _restart(cluster)
        yield
    finally:
        replace(cluster, before)
        _restart(cluster)


def as_it_was(found: Object) -> Object:
    """An object to write over its successor: without what the API server knows itself."""
    kept = ("name", "namespace", "labels", "annotations")
    metadata = {key: value for key, value in found["metadata"].items() if key in kept}
    return {**{key: value for key, value in found.items() if key != "status"}, "metadata": metadata}


def _name(one: Object) -> tuple[str, str]:
    return one["kind"], one["metadata"]["name"]


def _restart(cluster: Cluster) -> None:
    cluster.kubectl("delete", "pods", _WHERE, "--selector=app.kubernetes.io/name=hived", "--timeout=120s")
    cluster.kubectl("rollout", "status", "deployment/hived", _WHERE, "--timeout=600s")
