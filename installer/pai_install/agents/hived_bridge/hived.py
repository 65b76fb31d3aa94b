"""HiveD, which listens in the same pod only."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from pai_install.agents.common.http import Endpoint, HttpError, Response
from pai_install.agents.hived_bridge.messages import Gang, RefusedError, gang, gangs
from pai_install.agents.hived_bridge.metrics import Metrics

_JSON = {"Content-Type": "application/json"}
_GROUPS = "/v1/inspect/affinitygroups/"


@dataclass(frozen=True)
class Hived:
    """HiveD's calls as the bridge uses them."""

    endpoint: Endpoint
    metrics: Metrics

    def extend(self, verb: str, body: bytes) -> Response:
        """Gives a call of kube-scheduler on. Raises HttpError."""
        return self._call(verb, "POST", f"/v1/extender/{verb}", body)

    def gangs(self) -> tuple[Gang, ...]:
        """All affinity groups. Raises HttpError: one bad group makes HiveD answer nothing of any (500)."""
        answer = self._call("groups", "GET", _GROUPS)
        try:
            return gangs(answer)
        except RefusedError as error:
            self.metrics.add("hived_bridge_hived_errors_total", call="groups")
            raise HttpError(f"its list of groups cannot be read: {error}") from error

    def gang(self, name: str) -> Gang | None:
        """The affinity group of that name, None without one, or if it cannot be read. Raises HttpError."""
        answer = self._call("groups", "GET", f"{_GROUPS}{quote(name, safe='')}")
        try:
            return gang(answer)
        except RefusedError:
            return None

    def up(self) -> bool:
        """Whether it answers."""
        try:
            answered = self.endpoint.call("GET", "/").status == 200
        except HttpError:
            answered = False
        self.metrics.set("hived_bridge_hived_up", float(answered))
        return answered

    def _call(self, call: str, method: str, path: str, body: bytes | None = None) -> Response:
        try:
            return self.endpoint.call(method, path, body, _JSON if body is not None else None)
        except HttpError:
            self.metrics.add("hived_bridge_hived_errors_total", call=call)
            raise
