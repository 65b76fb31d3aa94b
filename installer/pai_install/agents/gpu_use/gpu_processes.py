"""Devices of pods, from the kubelet's PodResources API (v1, gRPC on a socket).

gRPC runs on HTTP/2. This one call needs five kinds of frames. Its headers are sent without compression, and headers of
the answer are not read.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

SOCKET = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
_METHOD = "/v1.PodResourcesLister/List"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _AWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _ACK, _END_HEADERS, _PADDED = 1, 1, 4, 8
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# bytes that the kubelet may send unasked: of a machine with many pods
_ROOM = 16 * 1024 * 1024
_TIMEOUT_S = 10.0

Pod = tuple[str, str]


class KubeletError(Exception):
    """The kubelet did not answer."""


def devices_of_pods(path: Path = SOCKET) -> dict[Pod, dict[str, list[str]]]:
    """(namespace, name) of each pod -> resource -> IDs of devices. Raises KubeletError."""
    try:
        return parse(call(path, _METHOD))
    except (OSError, struct.error, IndexError, UnicodeDecodeError) as error:
        raise KubeletError(f"{path}: {error}") from error


def call(path: Path, method: str, message: bytes = b"") -> bytes:
    """The answer to one call of gRPC on a socket. Raises OSError, KubeletError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_TIMEOUT_S)
        connection.connect(str(path))
        body = b"\0" + struct.pack(">I", len(message)) + message
        connection.sendall(
            _PREFACE
            # Setting 4 is the window of a stream. Its default of 64 KiB would need updates for a longer answer.
            + frame(_SETTINGS, 0, 0, struct.pack(">HI", 4, _ROOM))
            + frame(_WINDOW, 0, 0, struct.pack(">I", _ROOM))
            + frame(_HEADERS, _END_HEADERS, 1, _headers(method))
            + frame(_DATA, _END_STREAM, 1, body)
        )
        found = _answer(connection)
    if len(found) < 5 or len(found) < 5 + struct.unpack(">I", found[1:5])[0]:
        raise KubeletError(f"{method}: it ended before its answer")
    if found[0]:
        raise KubeletError(f"{method}: the answer is compressed")
    return found[5 : 5 + struct.unpack(">I", found[1:5])[0]]


def _answer(connection: socket.socket) -> bytes:
    """Returns the data of the stream up to its end."""
    found = b""
    while True:
        kind, flags, stream, content = receive(connection)
        if kind == _SETTINGS and not flags & _ACK:
            connection.sendall(frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            # gRPC ends a connection whose pings get no answer.
            connection.sendall(frame(_PING, _ACK, 0, content))
        elif kind in (_RESET, _AWAY):
            raise KubeletError(f"the call was refused: {content[:80]!r}")
        elif kind == _DATA and stream == 1:
            found += content[1 : len(content) - content[0]] if flags & _PADDED else content
            if len(found) > _ROOM:
                raise KubeletError("the answer is too long")
        if kind in (_DATA, _HEADERS) and stream == 1 and flags & _END_STREAM:
            return found


def frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    """A frame of HTTP/2."""
    return struct.pack(">I", len(content))[1:] + struct.pack(">BBI", kind, flags, stream) + content


def receive(connection: socket.socket) -> tuple[int, int, int, bytes]:
    """The next frame: kind, flags, stream, content. Raises OSError where the other side goes."""
    head = _exactly(connection, 9)
    kind, flags, stream = struct.unpack(">BBI", head[3:])
    return kind, flags, stream & 0x7FFFFFFF, _exactly(connection, int.from_bytes(head[:3], "big"))


def _exactly(connection: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        part = connection.recv(length - len(found))
        if not part:
            raise OSError("the other side has closed the connection")
        found += part
    return found


def _headers(method: str) -> bytes:
    """Each as a literal that is to be kept in no table: no compression."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": method,
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in fields.items())


def _text(word: str) -> bytes:
    return bytes([len(word)]) + word.encode()


def parse(message: bytes) -> dict[Pod, dict[str, list[str]]]:
    """Parses an answer of List. Raises IndexError, UnicodeDecodeError, or struct.error for an invalid one."""
    found: dict[Pod, dict[str, list[str]]] = {}
    for pod in _all(message, 1):
        devices = found.setdefault((_word(pod, 2), _word(pod, 1)), {})
        for container in _all(pod, 3):
            for held in _all(container, 2):
                devices.setdefault(_word(held, 1), []).extend(one.decode() for one in _all(held, 2))
    return found


def _word(message: bytes, number: int) -> str:
    return next(_all(message, number), b"").decode()


def _all(message: bytes, wanted: int) -> Iterator[bytes]:
    """The fields of that number in a message of protobuf that are texts or messages."""
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        kind = key & 7
        if kind == 0:
            _, at = _number(message, at)
        elif kind == 2:
            length, at = _number(message, at)
            if at + length > len(message):
                raise IndexError("a field ends after its message")
            if key >> 3 == wanted:
                yield message[at : at + length]
            at += length
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise IndexError(f"{kind} is no kind of field")


def _number(message: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = shift = 0
    while True:
        value |= (message[at] & 0x7F) << shift
        if message[at] < 0x80:
            return value, at + 1
        at, shift = at + 1, shift + 7
