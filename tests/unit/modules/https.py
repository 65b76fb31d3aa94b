"""A server with TLS on this box, for modules that ask one."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from pai_install.registry.identity import Serving


@contextmanager
def https_server(folder: Path, shown: Serving, handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serves with a certificate; its URL. folder: where the certificate is written, with its key."""
    file = folder / "tls.pem"
    file.write_text(shown.chain)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
