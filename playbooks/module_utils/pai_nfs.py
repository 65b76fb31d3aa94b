"""Asks an NFS server whether it serves a folder to this machine: without a mount, a kernel's client, or a change.

One request of NFS version 4.0 (RFC 7530) over ONC RPC (RFC 5531): look up each part of the path from the root.
"""

from __future__ import annotations

import errno
import os
import random
import socket
import struct
import time
from typing import Any

from ansible.module_utils.pai_parallel import in_parallel

PORT = 2049
TIMEOUT_S = 5.0
# answers, as preflight has them: served, silent, missing (or not for this machine), unclear
SERVED, SILENT, MISSING, UNCLEAR = "served", "silent", "missing", "unclear"
_NFS, _VERSION, _COMPOUND = 100003, 4, 1
_PUTROOTFH, _LOOKUP = 24, 15
_NFS_OK = 0
_REFUSALS = {1: "not permitted", 2: "no such export", 13: "access denied", 20: "not a folder"}
_LONGEST = 1 << 20
# servers take requests from ports that only root may use, unless told otherwise
_ROOTS_PORTS = range(665, 1024)


def probe_export(server: str, path: str, port: int = PORT, timeout_s: float = TIMEOUT_S) -> dict[str, str]:
    """Probes an export. Returns answer (SERVED, SILENT, MISSING, or UNCLEAR) and why ("" for SERVED). Never raises."""
    try:
        with _connected(server, port, timeout_s) as connection:
            return _parsed(_exchange(connection, _request(path), time.monotonic() + timeout_s))
    except OSError as error:
        return _answer(SILENT, str(error) or type(error).__name__)
    except (struct.error, ValueError) as error:
        return _answer(UNCLEAR, f"what answers speaks no NFS: {error}")


def _answer(answer: str, why: str = "") -> dict[str, str]:
    return {"answer": answer, "why": why}


def _connected(server: str, port: int, timeout_s: float) -> socket.socket:
    # Linux exports have the option secure by default: they refuse ports above 1023, which any user may use.
    for own in random.sample(_ROOTS_PORTS, 5) if os.geteuid() == 0 else ():
        try:
            return socket.create_connection((server, port), timeout=timeout_s, source_address=("", own))
        except OSError as error:  # another program may have it, or a recent connection to the same server
            if error.errno not in (errno.EADDRINUSE, errno.EADDRNOTAVAIL):
                raise
    return socket.create_connection((server, port), timeout=timeout_s)


def _request(path: str) -> bytes:
    """The call: a COMPOUND of version 4.0 as root of this machine."""
    names = [name.encode() for name in path.split("/") if name]
    lookups = b"".join(struct.pack(">I", _LOOKUP) + _opaque(name) for name in names)
    operations = struct.pack(">I", 1 + len(names)) + struct.pack(">I", _PUTROOTFH) + lookups
    login = _opaque(struct.pack(">I", 0) + _opaque(b"pai-install") + struct.pack(">III", 0, 0, 0))
    head = struct.pack(">7I", random.getrandbits(32), 0, 2, _NFS, _VERSION, _COMPOUND, 1)
    no_verifier, no_tag, minor_version = struct.pack(">II", 0, 0), _opaque(b""), struct.pack(">I", 0)
    return head + login + no_verifier + no_tag + minor_version + operations


def _opaque(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + b"\0" * (-len(data) % 4)


def _exchange(connection: socket.socket, request: bytes, deadline: float) -> bytes:
    """The reply, without its record marks. Raises OSError when it does not come in time, ValueError for no reply."""
    connection.sendall(struct.pack(">I", 1 << 31 | len(request)) + request)
    # A record of ONC RPC may come in several fragments. The highest bit marks the last one.
    reply, last = b"", False
    while not last:
        (mark,) = struct.unpack(">I", _read(connection, 4, deadline))
        last = bool(mark >> 31)
        reply += _read(connection, mark & 0x7FFFFFFF, deadline)
    # Any service may listen on this port. A reply repeats the number of the call.
    if reply[:8] != request[:4] + struct.pack(">I", 1):
        raise ValueError("not the answer to the question")
    return reply


def _read(connection: socket.socket, length: int, deadline: float) -> bytes:
    if length > _LONGEST:
        raise ValueError(f"an answer of {length} bytes")
    data = b""
    while len(data) < length:
        # The deadline counts for the whole reply, so a slow sender of single bytes cannot hold a machine.
        connection.settimeout(max(0.01, deadline - time.monotonic()))
        part = connection.recv(length - len(data))
        if not part:
            raise ConnectionResetError("the connection was closed without an answer")
        data += part
    return data


def _parsed(reply: bytes) -> dict[str, str]:
    """Parses a reply into answer and why."""
    (refused,) = struct.unpack_from(">I", reply, 8)
    if refused:
        return _answer(UNCLEAR, "it wants another login than the machine's address")
    _flavor, length = struct.unpack_from(">II", reply, 12)
    (accepted,) = struct.unpack_from(">I", reply, 20 + length)
    if accepted:
        return _answer(UNCLEAR, "it does not speak NFS version 4")
    (status,) = struct.unpack_from(">I", reply, 24 + length)
    if status == _NFS_OK:
        return _answer(SERVED)
    # nfsd hides exports from machines without access, so a missing folder and a refusal look alike.
    if status in _REFUSALS:
        return _answer(MISSING, _REFUSALS[status])
    return _answer(UNCLEAR, f"NFS error {status}")


def exports(wanted: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Probes each {server, path, port} and returns the answers in the same order."""
    return in_parallel(lambda entry: probe_export(entry["server"], entry["path"], int(entry["port"])), wanted)
