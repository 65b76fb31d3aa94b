"""Entry point of the bridge."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from functools import partial

from pai_install.agents.common.api import with_token
from pai_install.agents.common.http import Endpoint, Response
from pai_install.agents.common.log import Log
from pai_install.agents.hived_bridge.cluster import Cluster
from pai_install.agents.hived_bridge.configuration import Configuration, Record
from pai_install.agents.hived_bridge.eviction import Eviction
from pai_install.agents.hived_bridge.extender import Extender
from pai_install.agents.hived_bridge.hived import Hived
from pai_install.agents.hived_bridge.messages import RefusedError
from pai_install.agents.hived_bridge.metrics import Metrics
from pai_install.agents.hived_bridge.servers import Server
from pai_install.agents.hived_bridge.settings import Settings, parse

_LOOK_S = 2.0
# how long a server takes to notice that it is to end
_POLL_S = 0.1
_UP_TIMEOUT_S = 2.0
_EXTENDER = "/v1/extender/"
_VERBS = ("filter", "preempt", "bind")
# above the sum of all waits of one call; kube-scheduler gives up after that
CALL_LIMIT_S = 15.0
_PROBE_LIMIT_S = 5.0
_KEY = "hivedscheduler.yaml"


class Bridge:
    """All of it, wired."""

    def __init__(self, settings: Settings, log: Log) -> None:
        """Raises OSError when a port is taken."""
        self.metrics, self.log = Metrics(), log
        authority = None if settings.plain_api else settings.authority
        access = with_token(settings.api_url, settings.token, authority)
        cluster = Cluster(access, settings.api_timeout_s, self.metrics)
        hived = Hived(Endpoint("127.0.0.1", settings.hived_port, settings.hived_timeout_s), self.metrics)
        self._probe = Hived(Endpoint("127.0.0.1", settings.hived_port, _UP_TIMEOUT_S), self.metrics)
        self.eviction = Eviction(hived, cluster, self.metrics, log, settings.eviction_wait_s)
        self.extender = Extender(hived, self.eviction, self.metrics, log, settings.delay_s)
        place = (settings.namespace, settings.record, _KEY)
        record = Record(partial(cluster.read, *place), partial(cluster.write, *place))
        self.configuration = Configuration(settings.wanted, settings.used, record, self.metrics, log, self._probe.up)
        self._servers = (
            Server(("127.0.0.1", settings.extender_port), self._extend, CALL_LIMIT_S),
            # Prometheus and the kubelet come from other machines. This port takes no body and changes nothing.
            Server(("", settings.open_port), self._state, _PROBE_LIMIT_S),
        )
        self._threads = [threading.Thread(target=server.serve_forever, args=(_POLL_S,)) for server in self._servers]
        self._threads.append(threading.Thread(target=self.configuration.watch, args=(_LOOK_S,)))

    def start(self) -> None:
        """Writes HiveD's configuration, then listens. Raises OSError."""
        # HiveD's container starts after the bridge listens, so its file is there by then.
        self.configuration.begin()
        for thread in self._threads:
            thread.start()
        self.log("the bridge listens")

    def stop(self) -> None:
        """Takes no more calls, ends those that are under way, then what they began."""
        self.configuration.end()
        for server in self._servers:
            server.shutdown()
            server.server_close()
        for thread in self._threads:
            thread.join()
        self.eviction.close()
        self.log("the bridge has ended")

    @property
    def ports(self) -> tuple[int, int]:
        """kube-scheduler's and the open one, as they are."""
        extender, opened = (server.server_address[1] for server in self._servers)
        return int(extender), int(opened)

    def _extend(self, path: str, body: bytes | None) -> Response | None:
        verb = path[len(_EXTENDER) :]
        if body is None or not path.startswith(_EXTENDER) or verb not in _VERBS:
            return None
        try:
            return self.extender.answer(verb, body)
        except RefusedError:
            raise
        # kube-scheduler shows this text in the events of the pod. Without an answer, it would only see a closed
        # connection.
        except Exception as error:
            self.log.warn("a call of kube-scheduler cannot be processed", verb=verb, reason=repr(error))
            return Response(500, b'{"Error": "hived-bridge: internal error"}')

    def _state(self, path: str, body: bytes | None) -> Response | None:
        if body is not None:
            return None
        if path == "/livez":
            return Response(200, b"the bridge answers\n")
        if path == "/healthz":
            return _status(self._probe.up(), "HiveD answers", "HiveD does not answer")
        if path == "/readyz":
            current = self.configuration.current
            ready = current and self._probe.up()
            return _status(ready, "HiveD runs the configuration of its ConfigMap", self._cause(current=current))
        if path == "/metrics":
            self._probe.up()
            return Response(200, self.metrics.text().encode())
        return None

    def _cause(self, *, current: bool) -> str:
        if self.configuration.state.refused:
            return "HiveD rejects the configuration of its ConfigMap and runs its last good one"
        return "HiveD does not answer" if current else "HiveD has not started with its configuration yet"


def _status(holds: bool, good: str, bad: str) -> Response:  # noqa: FBT001
    return Response(200 if holds else 503, f"{good if holds else bad}\n".encode())


def main(words: Sequence[str]) -> int:
    """Runs until SIGTERM or SIGINT; 1 where it cannot start."""
    log = Log()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    try:
        bridge = Bridge(parse(words), log)
        bridge.start()
    except OSError as error:
        log("the bridge cannot start", reason=str(error))
        return 1
    ended.wait()
    bridge.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
