"""Takes everything of the self-test out of a cluster, also that of runs that were killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pai_install.cluster import read
from pai_install.cluster.client import ApiError, ClusterClient, Patch, Select
from pai_install.errors import PaiError
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, text
from pai_install.run.self_test.devices import taken
from pai_install.schedulers.self_test.driver import SelfTestDriver
from pai_install.schedulers.self_test.model import OURS

# how many replicas a controller had before the test stopped it
REPLICAS = "pai-install/self-test-replicas"
_CLASSES = "priorityclasses.scheduling.k8s.io"
_GONE_S = 90
_BACK_S = 120


def clean(cluster: ClusterClient, driver: SelfTestDriver) -> None:
    """Begins to remove objects, takes devices away, and gives stopped controllers their replicas back.

    Raises PaiError where the kinds of the scheduler are not in the cluster.
    """
    # The controllers of the scheduler remove the finalizers of jobs and queues. A stopped one would block the deletion.
    start_controllers(cluster, driver.namespaces)
    for objects in _own_objects(cluster, driver):
        if objects:
            cluster.delete([ref_of(entry) for entry in objects])
    cluster.patch(list(taken(read.nodes(cluster))))


def gone(cluster: ClusterClient, driver: SelfTestDriver, pause: Callable[[float], None]) -> tuple[str, ...]:
    """Waits until the objects of `clean` are deleted. Returns the names of remaining ones after a timeout."""
    left: tuple[str, ...] = ()
    for _ in range(_GONE_S):
        left = tuple(str(ref_of(entry)) for objects in _own_objects(cluster, driver) for entry in objects)
        if not left:
            break
        pause(1)
    return left


def _own_objects(cluster: ClusterClient, driver: SelfTestDriver) -> tuple[tuple[JsonObject, ...], ...]:
    """Namespaces, then the others: queues wait for their jobs."""
    kinds = (("namespaces",), (_CLASSES, *driver.kinds))
    try:
        return cluster.list(*(Select(some, labels=OURS) for some in kinds))
    except ApiError as error:
        raise _not_there(error) from error


def _not_there(error: ApiError) -> PaiError:
    return PaiError(
        "cannot test the scheduler: its kinds do not exist in the cluster",
        code="scheduler-kinds-missing",
        details=error.message,
        remedy="run pai-install apply, or name another scheduler with --backend",
    )


def ref_of(entry: JsonObject) -> Ref:
    """Returns the reference of an object with its group, because several groups have jobs and queues."""
    group, slash, _ = text(entry.get("apiVersion")).partition("/")
    metadata, kind = child(entry, "metadata"), text(entry.get("kind")).lower()
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}es" if kind.endswith("s") else f"{kind}s"
    return Ref(f"{plural}.{group}" if slash else plural, text(metadata.get("name")), text(metadata.get("namespace")))


def stop_controllers(cluster: ClusterClient, namespaces: Sequence[str]) -> None:
    """Scales every Deployment of those namespaces to 0, and waits until their pods are gone."""
    patches = [_scaled(entry, 0, str(_replicas(entry))) for entry in _deployments(cluster, namespaces)]
    cluster.patch(patches)
    for namespace in namespaces:
        cluster.wait(Select(("pods",), namespace), "delete", _GONE_S)


def start_controllers(cluster: ClusterClient, namespaces: Sequence[str]) -> None:
    """Gives every Deployment that a run stopped its replicas back, and waits until they answer."""
    stopped = [entry for entry in _deployments(cluster, namespaces) if _kept(entry)]
    cluster.patch([_scaled(entry, int(_kept(entry)), None) for entry in stopped])
    for entry in stopped:
        cluster.wait([ref_of(entry)], "condition=Available", _BACK_S)


def _deployments(cluster: ClusterClient, namespaces: Sequence[str]) -> list[JsonObject]:
    found = cluster.list(*(Select(("deployments.apps",), namespace) for namespace in namespaces))
    return [entry for part in found for entry in part]


def _kept(entry: JsonObject) -> str:
    found = text(child(entry, "metadata", "annotations").get(REPLICAS))
    return found if found.isdigit() else ""


def _replicas(entry: JsonObject) -> int:
    """Returns the number of replicas, or the former number if a killed run stopped the object."""
    count = child(entry, "spec").get("replicas")
    return int(_kept(entry) or (count if isinstance(count, int) else 1))


def _scaled(entry: JsonObject, replicas: int, kept: str | None) -> Patch:
    return Patch(ref_of(entry), {"metadata": {"annotations": {REPLICAS: kept}}, "spec": {"replicas": replicas}})
