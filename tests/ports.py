"""Ports for the servers of tests."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path
from typing import IO

# Below the ports that the kernel gives to connections: between the choice of such a port and the start of the
# server, a connection of another test would take it.
_RANGE = range(15_000, 30_000)
# of this process
_given: set[int] = set()


def free_ports(count: int) -> tuple[int, ...]:
    """Different ports of 127.0.0.1 without a listener.

    No other test gets them, not even another worker: their servers may start a while later.
    """
    found: list[int] = []
    for port in random.sample(_RANGE, len(_RANGE)):
        with socket.socket() as probe:
            # as servers do: a port whose old connections wait for their end is free
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if not _takes(port):
            continue
        found.append(port)
        if len(found) == count:
            return tuple(found)
    raise RuntimeError(f"fewer than {count} ports are free")


def free_port() -> int:
    """One of them."""
    return free_ports(1)[0]


def _takes(port: int) -> bool:
    """Whether no test has the port: the byte of its number is locked until the end of the process."""
    if port in _given:
        return False
    try:
        fcntl.lockf(_locks(os.getpid()), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    _given.add(port)
    return True


@cache
def _locks(process: int) -> IO[bytes]:
    del process  # a child has the file, and none of the locks
    return Path(tempfile.gettempdir(), f"pai-test-ports-{os.getuid()}").open("ab")
