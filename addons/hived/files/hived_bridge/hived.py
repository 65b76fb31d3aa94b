"""HiveD, which listens in the same pod only."""

from __future__ import annotations

from dataclasses import dataclass

from hived_bridge.metrics import Metrics
from hived_bridge.peer import Answer, Peer, PeerError
from hived_bridge.shapes import Gang, RefusedError, gangs

_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Hived:
    """HiveD's calls as the bridge uses them."""

    peer: Peer
    metrics: Metrics

    def extend(self, verb: str, body: bytes) -> Answer:
        """Gives a call of kube-scheduler on. Raises PeerError."""
        return self._call(verb, "POST", f"/v1/extender/{verb}", body)

    def gangs(self) -> tuple[Gang, ...]:
        """All affinity groups. Raises PeerError: one bad group makes HiveD answer nothing of any (500)."""
        answer = self._call("groups", "GET", "/v1/inspect/affinitygroups/")
        try:
            return gangs(answer)
        except RefusedError as error:
            self.metrics.add("hived_bridge_hived_errors_total", call="groups")
            raise PeerError(f"its list of groups cannot be read: {error}") from error

    def up(self) -> bool:
        """Whether it answers."""
        try:
            answered = self.peer.call("GET", "/").status == 200
        except PeerError:
            answered = False
        self.metrics.set("hived_bridge_hived_up", float(answered))
        return answered

    def _call(self, call: str, method: str, path: str, body: bytes | None = None) -> Answer:
        try:
            return self.peer.call(method, path, body, _JSON if body is not None else None)
        except PeerError:
            self.metrics.add("hived_bridge_hived_errors_total", call=call)
            raise
