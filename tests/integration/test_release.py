"""Objects that others use, too: they stay without the fields that pai-install set. A real API server is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.ansible_path import module_util
from tests.integration.control_plane import Api, Json
from tests.waiting import until

_MAP: Json = {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}}
# in the shape of Volcano's queues: no field may be null
_SPEC: Json = {
    "guarantee": {"type": "object", "properties": {"resource": _MAP}},
    "deserved": _MAP,
    "capability": _MAP,
    "weight": {"type": "integer"},
    "reclaimable": {"type": "boolean"},
}


def _definition() -> Json:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": _SPEC}}}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "queues.scheduling.example.com"},
        "spec": {
            "group": "scheduling.example.com",
            "scope": "Cluster",
            "names": {"plural": "queues", "singular": "queue", "kind": "Queue"},
            "versions": [version],
        },
    }


def _queue(name: str, **spec: Any) -> Json:
    return {"apiVersion": "scheduling.example.com/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def test_volcanos_own_queue_is_given_back(api: Api, programs: dict[str, Path]) -> None:
    """Its controller sets weight, and pai-install the rest: of that nothing stays, not even null."""
    api.apply({**_definition(), "kind": "CustomResourceDefinition"})
    kubectl = module_util("pai_kubectl").Kubectl(str(api.kubeconfig("admin", api.token)), str(programs["kubectl"]))
    assert kubectl.call("wait", "--for=condition=Established", "crd/queues.scheduling.example.com").ok
    # it is served, and found by kubectl, a moment later
    until(lambda: kubectl.call("get", "queues.scheduling.example.com").ok)
    path = "/apis/scheduling.example.com/v1beta1/queues"
    # as Go writes it, with an empty guarantee
    api.ask("POST", f"{path}?fieldManager=vc-scheduler", _queue("default", weight=1, guarantee={}))
    ours = _queue(
        "default",
        guarantee={"resource": {"cpu": 1, "nvidia.com/gpu": 2}},
        deserved={"nvidia.com/gpu": 2},
        capability={"nvidia.com/gpu": 4},
        reclaimable=True,
    )
    metadata = {
        "name": "default",
        "labels": {"app.kubernetes.io/managed-by": "pai-install"},
        "annotations": {"pai-install/removal": "release"},
    }
    api.apply({**ours, "metadata": metadata})
    gone, why = module_util("pai_objects").Objects(kubectl).delete("", "queue/default")
    assert (gone, bool(why)) == (False, True)
    found = api.ask("GET", f"{path}/default")
    assert found["spec"] == {"weight": 1, "guarantee": {}}
    assert "labels" not in found["metadata"]
    assert "pai-install" not in {row["manager"] for row in found["metadata"]["managedFields"]}
