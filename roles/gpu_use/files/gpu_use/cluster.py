"""The two calls to the API server, with the identity that the machine's kubelet has: what a node may do of its pods."""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional
from urllib.parse import quote, urlencode

CONFIG = Path("/etc/kubernetes/kubelet.conf")
IDENTITY = Path("/var/lib/kubelet/pki/kubelet-client-current.pem")
# whose it is: what has it is a pod of a job
USER = "pai-install/user"
_TIMEOUT_S = 10


class ClusterError(Exception):
    """The API server did not do what it was asked."""


@dataclass(frozen=True)
class Cluster:
    """node: its name in the cluster. config: the kubelet's kubeconfig. identity: its certificate and key, as PEM."""

    node: str
    config: Path = CONFIG
    identity: Path = IDENTITY

    def pods(self) -> list[Mapping[str, Any]]:
        """Pods of jobs on this machine. Raises ClusterError."""
        asked = {"fieldSelector": f"spec.nodeName={self.node}", "labelSelector": USER, "resourceVersion": "0"}
        found = self._ask("GET", f"/api/v1/pods?{urlencode(asked)}", None).get("items")
        return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []

    def tell(self, namespace: str, name: str, uid: str, condition: Mapping[str, Any]) -> None:
        """Writes a condition of a pod, if it is still that pod. Raises ClusterError."""
        body = {"metadata": {"uid": uid}, "status": {"conditions": [condition]}}
        self._ask("PATCH", f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(name)}/status", body)

    def _ask(self, method: str, path: str, body: Optional[Mapping[str, Any]]) -> Mapping[str, Any]:
        try:
            server, context = self._server()
            data = None if body is None else json.dumps(body).encode()
            headers = {"Accept": "application/json", "Content-Type": "application/strategic-merge-patch+json"}
            request = urllib.request.Request(server + path, data, headers, method=method)  # noqa: S310 - its own server
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S, context=context) as answer:  # noqa: S310
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            raise ClusterError(f"{method} {path.partition('?')[0]}: {error.code} {error.reason}") from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ClusterError(f"{method} {path.partition('?')[0]}: {error}") from error
        return found if isinstance(found, Mapping) else {}

    def _server(self) -> tuple[str, Optional[ssl.SSLContext]]:
        """Read each time: the kubelet renews its certificate. Raises OSError, ValueError."""
        text = self.config.read_text()
        address = re.search(r"^\s*server: (\S+)", text, re.MULTILINE)
        authority = re.search(r"certificate-authority-data: (\S+)", text)
        if address is None:
            raise ValueError(f"{self.config} names no server")
        if authority is None:
            return address.group(1), None
        context = ssl.create_default_context(cadata=base64.b64decode(authority.group(1)).decode())
        context.load_cert_chain(self.identity)
        return address.group(1), context
