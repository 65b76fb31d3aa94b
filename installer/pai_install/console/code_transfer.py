"""Code above 1 MiB from the form: the console sends it to a port of a pod, which its user creates."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Network

from pai_install.app.code_storage import ENDED
from pai_install.cluster.client import ClusterClient
from pai_install.console.web_pages.owned import is_in
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.code_archive import PackedCode
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, rows, text
from pai_install.system.proc import Completed

# the network of a group opens the port of a new pod within seconds
_CONNECT_S, _SEND_S, _END_S, _POLL_S = 60.0, 120.0, 60.0, 0.5
_PORT = 8022


@dataclass(frozen=True)
class CodePort:
    """The way of the console. client: of the user. network: of all pods."""

    client: ClusterClient
    image: str
    network: IPv4Network
    port: int = _PORT
    clock: Callable[[], float] = time.monotonic

    def send(self, pod: JsonObject, packed: PackedCode) -> Completed:
        """Sends an archive to a pod that runs. Returns the result of its program. Raises PaiError."""
        ref = Ref("pod", pod["metadata"]["name"], pod["metadata"]["namespace"])
        with self._connected(self._address(ref)) as connection:
            packed.file.seek(0)
            try:
                while piece := packed.file.read(64 * 1024):
                    connection.sendall(piece)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                # the result of the program says why
                pass
            return self._result(ref)

    def _address(self, ref: Ref) -> str:
        (found,) = self.client.get([ref])
        address = text(child(found or {}, "status").get("podIP"))
        # A node writes the status of its pods, and the console asks from the network of a control plane.
        if not is_in(address, self.network):
            raise _unreachable(ref)
        return address

    def _connected(self, address: str) -> socket.socket:
        deadline = self.clock() + _CONNECT_S
        while True:
            try:
                connection = socket.create_connection((address, self.port), timeout=5)
            except OSError as error:
                if self.clock() > deadline:
                    raise _unreachable(address) from error
                time.sleep(_POLL_S)
            else:
                connection.settimeout(_SEND_S)
                return connection

    def _result(self, ref: Ref) -> Completed:
        deadline = self.clock() + _END_S
        while self.clock() < deadline:
            (found,) = self.client.get([ref])
            status = child(found or {}, "status")
            if found is None or status.get("phase") in ENDED:
                codes = [
                    child(child(row, "state"), "terminated").get("exitCode")
                    for row in rows(status.get("containerStatuses"))
                ]
                code = codes[0] if codes and isinstance(codes[0], int) else -1
                return Completed((), code, "", "")
            time.sleep(_POLL_S)
        return Completed((), -1, "", "the pod did not end")


def _unreachable(what: object) -> PaiError:
    return PaiError(
        f"cannot store the code: the console cannot connect to the pod {what}",
        code="code-not-stored",
        remedy="run pai-install job submit --code, or submit again",
        exit_code=ExitCode.STEP_FAILED,
    )
