"""A kubelet that answers who holds which devices, over real HTTP/2 frames; and messages of protobuf."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pai_install.agents.gpu_use.gpu_processes import frame, receive

Held = Mapping[tuple[str, str], Mapping[str, list[str]]]


def field(number: int, content: bytes) -> bytes:
    size, length = b"", len(content)
    while length >= 128:
        size, length = size + bytes([length & 0x7F | 0x80]), length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + content


def listing(held: Held) -> bytes:
    """A ListPodResourcesResponse."""
    return b"".join(field(1, _pod(*pod, devices)) for pod, devices in held.items())


def _pod(namespace: str, name: str, devices: Mapping[str, list[str]]) -> bytes:
    given = b"".join(
        field(2, field(1, resource.encode()) + b"".join(field(2, one.encode()) for one in ids) + field(3, b""))
        for resource, ids in devices.items()
    )
    # and numbers, as cpu_ids are, which are passed over
    container = field(1, b"main") + given + b"\x18\x05" + b"\x21" + bytes(8)
    return field(1, name.encode()) + field(2, namespace.encode()) + field(3, container)


@contextmanager
def answering(path: Path, *answer: bytes) -> Iterator[Path]:
    """A socket where each call gets these frames, after it was heard."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen()
        thread = threading.Thread(target=_serve, args=(server, answer), daemon=True)
        thread.start()
        yield path
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def _serve(server: socket.socket, answer: tuple[bytes, ...]) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            try:
                connection.recv(24)
                connection.sendall(frame(4, 0, 0, b"") + frame(6, 0, 0, bytes(8)))
                while receive(connection)[:3] != (0, 1, 1):
                    pass
                connection.sendall(b"".join(answer))
                while True:
                    receive(connection)
            except OSError:
                pass


def message(content: bytes) -> bytes:
    """As gRPC frames it."""
    return b"\0" + struct.pack(">I", len(content)) + content


def well(content: bytes) -> tuple[bytes, ...]:
    """Headers, data in two frames (one padded), and the end."""
    body = message(content)
    half = len(body) // 2
    padded = bytes([3]) + body[half:] + bytes(3)
    return (
        frame(1, 4, 1, b"\x88"),
        frame(0, 0, 1, body[:half]),
        frame(0, 8, 1, padded),
        frame(1, 5, 1, b"\0\x0bgrpc-status\x010"),
    )
