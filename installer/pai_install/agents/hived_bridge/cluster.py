"""Calls to the API server: pods of a node, preemption of a pod, the ConfigMap of the last good configuration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from http import HTTPStatus
from typing import Callable

from pai_install.agents.common.api import MERGE, STRATEGIC, Access, ApiError, Client, object_path
from pai_install.agents.common.values import Json, child, meta, rows, text
from pai_install.agents.hived_bridge.metrics import Metrics

# the bridge needs names, UIDs, and times of pods, not their specifications
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(frozen=True)
class Pod:
    """going: it is being deleted."""

    uid: str
    namespace: str
    name: str
    deleting: bool = False


class Cluster:
    """Counts the calls that fail."""

    def __init__(self, access: Callable[[], Access], timeout_s: float, metrics: Metrics) -> None:
        self._client, self._metrics = Client(access, timeout_s), metrics

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """Pods that are bound to a node; with an empty name the pods without a node. Raises ApiError."""
        with self._counted("get"):
            pages = self._client.pages("/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"}, _METADATA)
            return tuple(_pod(item) for page in pages for item in rows(page.get("items")))

    def preempt(self, pod: Pod, cause: str) -> bool:
        """Deletes the pod with that UID; False: it does not exist. Raises ApiError.

        The pod first gets the condition that kube-scheduler gives its victims. A Job does not count such a pod as
        failed. cause: the message of the condition.
        """
        return self._mark(pod, cause) and self._delete(pod)

    def _mark(self, pod: Pod, cause: str) -> bool:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": cause,
            "lastTransitionTime": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        # The API server refuses a patch with another UID. A new pod of this name is then safe.
        body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
        path = f"{object_path('v1', 'pods', pod.namespace, pod.name)}/status?fieldManager=hived-bridge"
        with self._counted("patch"):
            try:
                self._client.json("PATCH", path, body, STRATEGIC)
            except ApiError as error:
                if error.status in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND):
                    return False
                raise
        return True

    def _delete(self, pod: Pod) -> bool:
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}}
        with self._counted("delete"):
            try:
                return self._client.delete(object_path("v1", "pods", pod.namespace, pod.name), options)
            except ApiError as error:
                if error.status == HTTPStatus.CONFLICT:
                    return False
                raise

    def read(self, namespace: str, name: str, key: str) -> str:
        """The value of a key in a ConfigMap; empty without it. Raises ApiError."""
        with self._counted("get"):
            found = self._client.json("GET", object_path("v1", "configmaps", namespace, name))
        return text(child(found, "data").get(key))

    def write(self, namespace: str, name: str, key: str, value: str) -> None:
        """Writes a key of a ConfigMap that exists. Raises ApiError."""
        path = f"{object_path('v1', 'configmaps', namespace, name)}?fieldManager=hived-bridge"
        with self._counted("patch"):
            self._client.json("PATCH", path, {"data": {key: value}}, MERGE)

    @contextmanager
    def _counted(self, call: str) -> Iterator[None]:
        try:
            yield
        except ApiError:
            self._metrics.add("hived_bridge_api_errors_total", call=call)
            raise


def _pod(item: Json) -> Pod:
    deleted = child(item, "metadata").get("deletionTimestamp") is not None
    return Pod(meta(item, "uid"), meta(item, "namespace"), meta(item, "name"), deleted)
