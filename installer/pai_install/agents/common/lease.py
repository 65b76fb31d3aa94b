"""Leader election by a Lease in kube-system."""

from __future__ import annotations

import http
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone

from pai_install.agents.common.api import ApiError, Client, object_path
from pai_install.agents.common.values import Json, child, text

NAMESPACE = "kube-system"
_VERSION = "coordination.k8s.io/v1"
DURATION_S, RENEW_S = 45, 15
# The token is valid for a day. systemd starts the program again with a new one.
_LIFETIME_S = 12 * 3600


@dataclass
class Lease:
    """name: of the Lease. identity: this holder's. seen: last holder and renewal. seen_at: by this machine's clock."""

    client: Client
    name: str
    identity: str
    seen: tuple[str, str] = ("", "")
    seen_at: float = 0

    def hold(self, now: float) -> bool:
        """Acquires or renews the Lease. Returns False while another holder has it. Raises ApiError."""
        current = self._current()
        if current is None:
            self.client.json("POST", object_path(_VERSION, "leases", NAMESPACE), self._desired({}, now))
            return True
        spec = child(current, "spec")
        seen = text(spec.get("holderIdentity")), text(spec.get("renewTime"))
        # clocks of machines differ: the age of a renewal is measured by this machine's clock
        if seen != self.seen:
            self.seen, self.seen_at = seen, now
        if seen[0] not in ("", self.identity) and now - self.seen_at < DURATION_S:
            return False
        try:
            # The version in the metadata makes the API server refuse the second of two holders.
            self.client.json("PUT", self._path, self._desired(child(current, "metadata"), now))
        except ApiError as error:
            if error.status == http.HTTPStatus.CONFLICT:  # another holder was first
                return False
            raise
        return True

    def release(self) -> None:
        """Leaves it to the next holder. Raises ApiError."""
        current = self._current()
        if current is not None and child(current, "spec").get("holderIdentity") == self.identity:
            spec = {**child(current, "spec"), "holderIdentity": ""}
            self.client.json("PUT", self._path, {**current, "spec": spec})

    @property
    def _path(self) -> str:
        return object_path(_VERSION, "leases", NAMESPACE, self.name)

    def _current(self) -> Json | None:
        try:
            return self.client.json("GET", self._path)
        except ApiError as error:
            if error.status == http.HTTPStatus.NOT_FOUND:
                return None
            raise

    def _desired(self, metadata: Json, now: float) -> Json:
        moment = datetime.fromtimestamp(now, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": self.identity, "leaseDurationSeconds": DURATION_S, "renewTime": moment}
        version = {"resourceVersion": metadata["resourceVersion"]} if "resourceVersion" in metadata else {}
        return {
            "apiVersion": _VERSION,
            "kind": "Lease",
            "metadata": {"name": self.name, "namespace": NAMESPACE, **version},
            "spec": spec,
        }


def stand_by(lease: Lease, until: float, warn: Callable[[str], None]) -> bool:
    """Waits for the Lease. Returns False if another holder had it until then."""
    while time.time() < until:
        try:
            if lease.hold(time.time()):
                return True
        except ApiError as error:
            warn(str(error))
        time.sleep(RENEW_S)
    return False


def while_held(lease: Lease, until: float, step: Callable[[], None], warn: Callable[[str], None]) -> None:
    """Repeats a step until then, or until the Lease is lost. Raises ApiError when it cannot renew the Lease."""
    renewed = time.time()
    while time.time() < until:
        step()
        if time.time() - renewed < RENEW_S:
            continue
        try:
            if not lease.hold(time.time()):
                warn("another holder has the Lease")
                return
            renewed = time.time()
        except ApiError as error:
            # Earlier than another one may take the Lease, so that two never work at once.
            if time.time() - renewed > DURATION_S - RENEW_S:
                raise
            warn(str(error))


def serve(client: Client, name: str, work: Callable[[Lease, float], None], warn: Callable[[str], None]) -> int:
    """Waits for the Lease, works, and releases it. Returns the exit code of the program.

    work: takes the Lease, and the end of the token of the program. It raises ApiError when it cannot continue.
    """
    lease, until = Lease(client, name, socket.gethostname()), time.time() + _LIFETIME_S
    if not stand_by(lease, until, warn):
        return 0
    try:
        work(lease, until)
        lease.release()
    except SystemExit:
        lease.release()
        raise
    except ApiError as error:
        warn(str(error))
        return 1
    return 0
