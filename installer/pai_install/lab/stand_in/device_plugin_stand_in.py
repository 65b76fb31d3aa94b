#!/usr/bin/env python3
"""A simulated device plugin of NVIDIA: the kubelet gives pods GPUs, and with them a simulated nvidia-smi.

Usage: device_plugin_stand_in.py LIST, a file with the output of `nvidia-smi -L`. It implements the kubelet's interface
for device plugins (v1beta1, gRPC over HTTP/2) as far as the kubelet uses it: headers are never read. The kubelet first
requests options and then the device list, both with an empty message. Only an allocation has content.
"""

from __future__ import annotations

import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path("/var/lib/kubelet/device-plugins")
KUBELET, OWN = "kubelet.sock", "nvidia-stand-in.sock"
RESOURCE = "nvidia.com/gpu"
MOUNTS = {
    b"/usr/local/bin/nvidia-smi-stand-in": b"/usr/bin/nvidia-smi",
    b"/var/lib/pai-stand-in": b"/var/lib/pai-stand-in",
}
WAIT_S = 5
DATA, HEADERS, SETTINGS, PING = 0, 1, 4, 6
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def uuids(text: str) -> list[str]:
    """Of the GPUs that nvidia-smi lists."""
    return re.findall(r"UUID: (GPU-[0-9a-f-]+)", text)


def frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    """A frame of HTTP/2."""
    return struct.pack(">I", len(content))[1:] + struct.pack(">BBI", kind, flags, stream) + content


def exactly(connection: socket.socket, length: int) -> bytes:
    """So many bytes. Raises OSError where the other side goes."""
    found = b""
    while len(found) < length:
        part = connection.recv(length - len(found))
        if not part:
            raise OSError("the kubelet has closed the connection")
        found += part
    return found


def frames(connection: socket.socket) -> Iterator[tuple[int, int, int, bytes]]:
    """Yields kind, flags, stream, and content of each frame. Responds to frames about the connection."""
    while True:
        head = exactly(connection, 9)
        kind, flags, stream = struct.unpack(">BBI", head[3:])
        content = exactly(connection, int.from_bytes(head[:3], "big"))
        if kind in (SETTINGS, PING) and not flags & ACK:
            connection.sendall(frame(kind, ACK, 0, content if kind == PING else b""))
        yield kind, flags, stream, content


def text_field(number: int, content: bytes) -> bytes:
    """Returns a protobuf field. content: shorter than 16 KiB."""
    length = len(content)
    size = bytes([length]) if length < 128 else bytes([length & 0x7F | 0x80, length >> 7])
    return bytes([number << 3 | 2]) + size + content


def devices_message(ids: Iterable[str]) -> bytes:
    """All of them, healthy."""
    return b"".join(text_field(1, text_field(1, one.encode()) + text_field(2, b"Healthy")) for one in ids)


def fields(content: bytes) -> Iterator[bytes]:
    """Yields the contents of a message's fields. All of them are texts or messages."""
    at = 0
    while at < len(content):
        length, at = content[at + 1], at + 2
        if length >= 128:
            length, at = length & 0x7F | content[at] << 7, at + 1
        yield content[at : at + length]
        at += length


def allocated(request: bytes) -> bytes:
    """For each container of the request the stand-in for nvidia-smi, and in a variable which GPUs are its own."""
    return b"".join(text_field(1, container(list(fields(one)))) for one in fields(request))


def container(ids: list[bytes]) -> bytes:
    """ContainerAllocateResponse: a variable, and mounts that cannot be written."""
    mounts = b"".join(
        text_field(2, text_field(1, inside) + text_field(2, here) + b"\x18\x01") for here, inside in MOUNTS.items()
    )
    return text_field(1, text_field(1, b"PAI_STAND_IN_GPUS") + text_field(2, b"|".join(ids))) + mounts


def literal(name: str, value: str) -> bytes:
    """A header that no table keeps."""
    return b"".join(
        b"\0" * (not index) + bytes([len(word)]) + word.encode() for index, word in enumerate((name, value))
    )


def message(content: bytes) -> bytes:
    """As gRPC frames it."""
    return b"\0" + struct.pack(">I", len(content)) + content


@dataclass
class Kubelet:
    """A connection that the kubelet has made."""

    connection: socket.socket
    ids: list[str]
    requests: int = 0
    bodies: dict[int, bytes] = field(default_factory=dict)

    def serve(self) -> None:
        """Until it goes."""
        try:
            exactly(self.connection, len(PREFACE))
            self.connection.sendall(frame(SETTINGS, 0, 0, b""))
            for kind, flags, stream, content in frames(self.connection):
                if kind == DATA:
                    self.bodies[stream] = self.bodies.get(stream, b"") + content
                    if flags & END_STREAM:
                        # gRPC puts five bytes before each message.
                        self.answer(stream, self.bodies.pop(stream)[5:])
        except (OSError, struct.error):
            pass
        finally:
            self.connection.close()

    def answer(self, stream: int, request: bytes) -> None:
        """By its turn: options, the list of devices, which goes on without end, and allocations."""
        lists = False
        if request:
            content = allocated(request)
        else:
            self.requests += 1
            lists = self.requests > 1
            content = devices_message(self.ids) if lists else b""
        statement = b"\x88" + literal("content-type", "application/grpc")
        parts = frame(HEADERS, END_HEADERS, stream, statement) + frame(DATA, 0, stream, message(content))
        if not lists:
            parts += frame(HEADERS, END_HEADERS | END_STREAM, stream, literal("grpc-status", "0"))
        self.connection.sendall(parts)


def register(folder: Path) -> None:
    """Tells the kubelet where this plugin listens. Raises OSError."""
    fields = (b"v1beta1", OWN.encode(), RESOURCE.encode())
    request = b"".join(text_field(number, content) for number, content in enumerate(fields, 1))
    headers = {":method": "POST", ":scheme": "http", ":path": "/v1beta1.Registration/Register"}
    headers |= {":authority": "localhost", "content-type": "application/grpc", "te": "trailers"}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(10)
        connection.connect(str(folder / KUBELET))
        block = b"".join(literal(name, value) for name, value in headers.items())
        connection.sendall(PREFACE + frame(SETTINGS, 0, 0, b"") + frame(HEADERS, END_HEADERS, 1, block))
        connection.sendall(frame(DATA, END_STREAM, 1, message(request)))
        for kind, flags, stream, _ in frames(connection):
            if kind == HEADERS and stream == 1 and flags & END_STREAM:
                return


def listen(folder: Path, ids: list[str]) -> socket.socket:
    """The plugin's own socket, served by threads."""
    (folder / OWN).unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(folder / OWN))
    server.listen()

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=Kubelet(connection, ids).serve, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return server


def main() -> None:
    """Registers as soon as there is a kubelet, and again when it was restarted: it then has removed the socket."""
    ids, reported = uuids(Path(sys.argv[1]).read_text()), ""
    server = None
    while True:
        statement = "there is no kubelet yet"
        try:
            if server is not None and (FOLDER / OWN).exists():
                statement = f"the kubelet has {len(ids)} {RESOURCE}"
            elif (FOLDER / KUBELET).exists():
                if server is not None:
                    server.close()
                server = listen(FOLDER, ids)
                register(FOLDER)
                continue
        except (OSError, struct.error) as error:
            statement = str(error)
            (FOLDER / OWN).unlink(missing_ok=True)
        if statement != reported:
            print(statement, flush=True)  # noqa: T201 - goes to the journal
        reported = statement
        time.sleep(WAIT_S)


if __name__ == "__main__":
    main()
