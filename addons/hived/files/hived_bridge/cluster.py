"""The few calls to the API server: pods of a node, a pod's deletion, the ConfigMap of the last good configuration."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from hived_bridge.metrics import Metrics
from hived_bridge.peer import Answer, Peer, PeerError

# only names, UIDs and times of pods: their specifications are no business of the bridge
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_PAGE = 500
_MOST_PAGES = 400


class ClusterError(Exception):
    """The API server did not do what it was asked, and asking again may help. Says why, without secrets."""


@dataclass(frozen=True)
class Pod:
    """A pod as far as it is evicted. going: it is being deleted already."""

    uid: str
    namespace: str
    name: str
    going: bool = False


@dataclass(frozen=True)
class Cluster:
    """The API server. token: file of the service account's token, read at every call, as the kubelet renews it.

    authority: PEM file of the API server's authority; None: plain HTTP, which tests use.
    """

    host: str
    port: int
    token: Path
    authority: Path | None
    timeout_s: float
    metrics: Metrics

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """Pods that are bound to a node; with an empty name those that are bound to none. Raises ClusterError."""
        found: list[Pod] = []
        query = {"fieldSelector": f"spec.nodeName={node}", "limit": str(_PAGE)}
        for _ in range(_MOST_PAGES):
            page = self._json("GET", f"/api/v1/pods?{urlencode(query)}", accept=_METADATA)
            found += [_pod(item) for item in page.get("items") or ()]
            further = (page.get("metadata") or {}).get("continue")
            if not further:
                return tuple(found)
            query["continue"] = further
        raise ClusterError(f"the list of pods has more than {_MOST_PAGES} pages")

    def delete(self, pod: Pod) -> bool:
        """Deletes the pod if it still is the one with that UID; False: it is gone. Raises ClusterError."""
        path = f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}"
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}}
        answer = self._call("DELETE", path, options)
        if answer.status in (404, 409):
            return False
        self._expect_success("delete", answer)
        return True

    def data(self, namespace: str, name: str) -> Mapping[str, str]:
        """What a ConfigMap holds. Raises ClusterError."""
        found = self._json("GET", _config_map(namespace, name))
        return {str(key): str(value) for key, value in (found.get("data") or {}).items()}

    def keep(self, namespace: str, name: str, data: Mapping[str, str]) -> None:
        """Writes keys of a ConfigMap that exists. Raises ClusterError."""
        path = f"{_config_map(namespace, name)}?fieldManager=hived-bridge"
        answer = self._call("PATCH", path, {"data": dict(data)}, kind="application/merge-patch+json")
        self._expect_success("patch", answer)

    def _json(self, method: str, path: str, accept: str = "application/json") -> Mapping[str, Any]:
        answer = self._call(method, path, accept=accept)
        self._expect_success("get", answer)
        try:
            found = json.loads(answer.body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self._failed("get", "its answer is not JSON")
        return found

    def _call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        accept: str = "application/json",
        kind: str = "application/json",
    ) -> Answer:
        try:
            headers = {"Accept": accept, "Authorization": f"Bearer {self.token.read_text().strip()}"}
            content = None if body is None else json.dumps(body).encode()
            if content is not None:
                headers["Content-Type"] = kind
            return self._peer().call(method, path, content, headers)
        except PeerError as error:
            raise self._failed(method.lower(), str(error)) from error
        except OSError as error:  # of the token and the authority: says the file's name and no more
            raise self._failed(method.lower(), f"{error.strerror}: {error.filename}") from error

    def _peer(self) -> Peer:
        tls = None if self.authority is None else ssl.create_default_context(cafile=str(self.authority))
        return Peer(self.host, self.port, self.timeout_s, tls)

    def _expect_success(self, call: str, answer: Answer) -> None:
        if answer.status // 100 != 2:
            raise self._failed(call, f"HTTP {answer.status}")

    def _failed(self, call: str, why: str) -> ClusterError:
        self.metrics.add("hived_bridge_api_errors_total", call=call)
        return ClusterError(why)


def _config_map(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/{name}"


def _pod(item: Mapping[str, Any]) -> Pod:
    metadata = item.get("metadata") or {}
    going = metadata.get("deletionTimestamp") is not None
    return Pod(str(metadata.get("uid")), str(metadata.get("namespace")), str(metadata.get("name")), going)
