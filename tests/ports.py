"""Ports for the servers of tests."""

from __future__ import annotations

import random
import socket

# Below the ports that the kernel gives to connections: between the choice of such a port and the start of the
# server, a connection of another test would take it.
_RANGE = range(15_000, 30_000)


def free_ports(count: int) -> tuple[int, ...]:
    """Different ports of 127.0.0.1 without a listener."""
    found: list[int] = []
    for port in random.sample(_RANGE, len(_RANGE)):
        with socket.socket() as probe:
            # as servers do: a port whose old connections wait for their end is free
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return tuple(found)
    raise RuntimeError(f"fewer than {count} ports are free")


def free_port() -> int:
    """One of them."""
    return free_ports(1)[0]
