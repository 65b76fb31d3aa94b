"""A connection to the API server of a control plane over SSH: the sockets of HTTP are the input and output of ssh."""

from __future__ import annotations

import shlex
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection

from pai_install.cluster import relay
from pai_install.cluster.http import ApiServer, NotConnectedError
from pai_install.system.plain import plain_text
from pai_install.system.proc import Conversation

# ssh gives up before
_CONNECT_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 2.0
_KEPT = 4
_MOST_NOISE = 1 << 16
_MOST_WORDS = 400


@dataclass(frozen=True, slots=True)
class SshCommand:
    """A command line of ssh up to the command there, its environment, and the start of its input."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    prefix: str = ""


class SshConnection(HTTPConnection):
    """HTTP over the input and output of ssh."""

    def __init__(
        self,
        host: str,
        port: int | None = None,
        *,
        command: Callable[[], SshCommand],
        **options: Any,  # noqa: ANN401 - of urllib3
    ) -> None:
        super().__init__(host, port, **options)
        self._command = command
        self._ssh: Conversation | None = None

    def connect(self) -> None:
        """Starts ssh. Raises NotConnectedError if the relay there has no connection to the API server."""
        command = self._command()
        ssh = Conversation(command.argv, env=command.environment)
        try:
            ssh.socket.sendall(f"{command.prefix}{relay.BEGIN}\n".encode())
            _await_ready(ssh.socket)
        except OSError as error:
            raise NotConnectedError(plain_text(ssh.end(_END_TIMEOUT_S).strip()[-_MOST_WORDS:]) or str(error)) from error
        except BaseException:
            ssh.end(0)
            raise
        self._ssh, self.sock = ssh, ssh.socket

    def close(self) -> None:
        """Ends the connection, and with it the relay and ssh."""
        super().close()
        ssh, self._ssh = self._ssh, None
        if ssh is not None:
            ssh.end(_END_TIMEOUT_S)


class _SshPool(urllib3.HTTPConnectionPool):
    def __init__(self, command: Callable[[], SshCommand]) -> None:
        super().__init__("localhost", maxsize=_KEPT)
        self.ConnectionCls = partial(SshConnection, command=command)  # type: ignore[assignment]


def over_ssh(name: str, command: Callable[[], SshCommand]) -> ApiServer:
    """The API server of a control plane. command: runs the relay there, made at the first request."""
    return ApiServer(name, _SshPool(command), certified=True)


def relay_words(*program: str) -> str:
    """The command that runs the relay. -I: it starts in the login user's home, where Python would look for modules."""
    return shlex.join(["python3", "-I", "-c", Path(relay.__file__).read_text(), *program])


def _await_ready(connection: socket.socket) -> None:
    """Reads up to the line READY. Raises OSError if it does not come."""
    end, wanted = time.monotonic() + _CONNECT_TIMEOUT_S, f"{relay.READY}\n".encode()
    found = bytearray()
    while not found.endswith(wanted):
        connection.settimeout(max(end - time.monotonic(), 0.1))
        byte = connection.recv(1)  # the next bytes are the API server's
        if not byte or len(found) > _MOST_NOISE:
            raise ConnectionError("the control plane closed the connection")
        found += byte
