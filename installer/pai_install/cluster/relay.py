"""Connects its input and output with the API server of a control plane. over_ssh.py sends this file there.

It needs Python 3.9. It authenticates with the administrator's kubeconfig, so that no key leaves the machine. Lines of
input before BEGIN are noise of sudo. READY, a line of output, precedes the bytes of the connection. With a program as
its arguments, it passes the output of that on instead, until its input ends.
"""

import base64
import os
import re
import select
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

BEGIN = "pai-install-begin"
READY = "pai-install-ready"
CONFIG = "/etc/kubernetes/admin.conf"
TIMEOUT_S = 15
SIZE = 1 << 16


def connect(config: str) -> ssl.SSLSocket:
    """A connection to the API server of a kubeconfig, as its user."""
    content = Path(config).read_text(encoding="utf-8")

    # Python has no YAML parser, and this program uses the standard library alone.
    def value(name: str) -> str:
        found = re.search(rf"^\s*{name}: *(\S+)", content, re.MULTILINE)
        if found is None:
            raise ValueError(f"{config} has no {name}")
        return found[1].strip("\"'")

    def data(name: str) -> str:
        return base64.b64decode(value(f"{name}-data")).decode()

    context = ssl.create_default_context(cadata=data("certificate-authority"))
    # ssl reads certificates from files only. An anonymous file keeps the key off the disk.
    identity = os.memfd_create("identity")
    os.write(identity, (data("client-certificate") + "\n" + data("client-key")).encode())
    context.load_cert_chain(f"/proc/self/fd/{identity}")
    os.close(identity)
    host, _, port = value("server").partition("://")[2].rstrip("/").rpartition(":")
    plain = socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_S)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(plain, server_hostname=host.strip("[]"))


def relay(server: ssl.SSLSocket) -> None:
    """Passes bytes in both directions until one side ends."""
    # Without blocking, because one direction must not stop the other.
    server.settimeout(0)
    while True:
        # select does not see bytes that TLS has decrypted already.
        ready = [server.fileno()] if server.pending() else select.select([0, server.fileno()], [], [])[0]
        if 0 in ready:
            content = os.read(0, SIZE)
            if not content:
                return
            send(server, content)
        if server.fileno() in ready:
            try:
                content = server.recv(SIZE)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                # The bytes were a part of a TLS record, or a message of TLS itself.
                continue
            if not content:
                return
            write(content)


def send(server: ssl.SSLSocket, content: bytes) -> None:
    """Sends all bytes."""
    rest = memoryview(content)
    while rest:
        try:
            rest = rest[server.send(rest) :]
        except ssl.SSLWantWriteError:
            select.select([], [server], [])
        except ssl.SSLWantReadError:
            select.select([server], [], [])


def write(content: bytes) -> None:
    """Writes all bytes to the output."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(1, rest) :]


def read_line() -> bytes:
    """One line of input, without reading ahead. Empty at the end of the input."""
    found = bytearray()
    while not found.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return b""
        found += byte
    return bytes(found)


def run(program: "list[str]") -> int:
    """Runs a program. Ends it at the end of our input, because the reader has closed it."""
    with subprocess.Popen(program, stdin=subprocess.DEVNULL) as child:
        threading.Thread(target=end_with_input, args=(child,), daemon=True).start()
        return child.wait()


def end_with_input(child: "subprocess.Popen[bytes]") -> None:
    """Ends the child at the end of our input."""
    while os.read(0, SIZE):
        pass
    child.terminate()


def main() -> int:
    """Connects and passes on."""
    while True:
        line = read_line()
        if not line:
            return 1
        if line.strip() == BEGIN.encode():
            break
    if sys.argv[1:]:
        return run(sys.argv[1:])
    try:
        server = connect(CONFIG)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"cannot connect to the API server: {error}\n")
        return 1
    write(f"{READY}\n".encode())
    try:
        relay(server)
    except OSError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
