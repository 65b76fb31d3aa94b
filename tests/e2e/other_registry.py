"""A registry on a machine's own loopback that has one image of containerd under another name: run as root, PORT DIGEST.

Any registry that members reach could have the same content.
"""

from __future__ import annotations

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CTR = ("/usr/local/bin/ctr", "--namespace", "k8s.io", "content", "get")


class Registry(BaseHTTPRequestHandler):
    """Every tag is the image. A digest is that content."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, *, with_body: bool) -> None:
        wanted = self.path.rpartition("/")[2]
        digest = wanted if wanted.startswith("sha256:") else sys.argv[2]
        body = b"" if self.path == "/v2/" else subprocess.run([*CTR, digest], capture_output=True, check=True).stdout
        kind = json.loads(body)["mediaType"] if "/manifests/" in self.path else "application/octet-stream"
        self.send_response(200)
        for name, value in (("Content-Type", kind), ("Content-Length", len(body)), ("Docker-Content-Digest", digest)):
            self.send_header(name, str(value))
        self.end_headers()
        if with_body:
            self.wfile.write(body)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Registry).serve_forever()
