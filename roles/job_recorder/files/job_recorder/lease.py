"""Which of several recorders records: the one that holds the Lease."""

from __future__ import annotations

import http
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from job_recorder.cluster import Cluster, ClusterError
from job_recorder.shapes import child, text

NAMESPACE, NAME = "kube-system", "pai-job-recorder"
_PATH = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
# after so long without a sign of its holder another one takes it; how often the holder gives one
LASTING_S, RENEW_S = 45, 15


@dataclass
class Lease:
    """Our side of it. seen: the last sign of another holder, and when we saw it by our own clock."""

    cluster: Cluster
    me: str
    seen: tuple[str, str] = ("", "")
    seen_at: float = 0

    def hold(self, now: float) -> bool:
        """Takes it, or keeps it; False while another one has it. Raises ClusterError."""
        found = self._found()
        if found is None:
            self.cluster.json("POST", _PATH, self._wanted({}, now))
            return True
        spec = child(found, "spec")
        holder, sign = text(spec.get("holderIdentity")), text(spec.get("renewTime"))
        # clocks of machines may differ: what counts is how long the sign has been the same to us
        if (holder, sign) != self.seen:
            self.seen, self.seen_at = (holder, sign), now
        if holder not in ("", self.me) and now - self.seen_at < LASTING_S:
            return False
        try:
            self.cluster.json("PUT", f"{_PATH}/{NAME}", self._wanted(child(found, "metadata"), now))
        except ClusterError as error:
            if error.status == http.HTTPStatus.CONFLICT:  # another one was first
                return False
            raise
        return True

    def let_go(self) -> None:
        """Gives it to whoever comes first. Raises ClusterError."""
        found = self._found()
        if found is not None and child(found, "spec").get("holderIdentity") == self.me:
            spec = {**child(found, "spec"), "holderIdentity": ""}
            self.cluster.json("PUT", f"{_PATH}/{NAME}", {**found, "spec": spec})

    def _found(self) -> Mapping[str, Any] | None:
        try:
            return self.cluster.json("GET", f"{_PATH}/{NAME}")
        except ClusterError as error:
            if error.status == http.HTTPStatus.NOT_FOUND:
                return None
            raise

    def _wanted(self, metadata: Mapping[str, Any], now: float) -> Mapping[str, Any]:
        moment = datetime.fromtimestamp(now, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": self.me, "leaseDurationSeconds": LASTING_S, "renewTime": moment}
        version = {"resourceVersion": metadata["resourceVersion"]} if "resourceVersion" in metadata else {}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": NAME, "namespace": NAMESPACE, **version},
            "spec": spec,
        }
