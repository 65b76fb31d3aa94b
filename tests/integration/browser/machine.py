"""A machine for jobs: what a kubelet answers about a log, and the pods that their controllers would make."""

from __future__ import annotations

import ssl
import time
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

from tests.integration.control_plane import Api, Json
from tests.integration.openpai.conftest import Console
from tests.ports import free_port

# language of the person -> job
JOBS = {"en": "by-keyboard", "zh": "in-chinese"}
SPACE, NODE = "team", "worker-1"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets/{}"
_LINES, _WAIT_S = 6, 1.0


class _Log(BaseHTTPRequestHandler):
    """Two lines are there already, and the others come one after the other."""

    protocol_version = "HTTP/1.0"
    says, lines = "step", _LINES

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        with suppress(OSError):  # a reader that goes away
            self._write()

    def _write(self) -> None:
        follows = parse_qs(urlsplit(self.path).query).get("follow") == ["true"]
        for number in range(self.lines if follows else 2):
            if number > 1:
                time.sleep(_WAIT_S)
            self.wfile.write(f"{self.says} {number}\n".encode())
            self.wfile.flush()

    def log_message(self, *words: object) -> None:
        """Nothing: pytest shows what fails."""


@contextmanager
def kubelet(console: Console, says: str = "step", lines: int = _LINES) -> Iterator[int]:
    """Yields the port of the server. says: each line of a log, before its number. lines: of a followed log."""
    handler = type("_Says", (_Log,), {"says": says, "lines": lines})
    server = ThreadingHTTPServer(("127.0.0.1", free_port()), handler)
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(console.folder / "tls.crt", console.folder / "tls.key")
    server.socket = trust.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def start_job(api: Api, port: int, job: str, space: str = SPACE, user: str = "alice") -> None:
    """Waits for the job, and lets its first pod run on the machine."""
    start_node(api, port)
    end = time.monotonic() + 300
    while not is_there(api, job, space):
        if time.monotonic() > end:
            return  # the tests of another module have begun
        time.sleep(0.5)
    name = f"{job}-worker-0-0"
    labels = {
        "pai-install/user": user,
        "jobset.sigs.k8s.io/jobset-name": job,
        "jobset.sigs.k8s.io/replicatedjob-name": "worker",
        "batch.kubernetes.io/job-completion-index": "0",
    }
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"{job}-worker-0", "uid": "0", "controller": True}
    metadata = {"name": name, "namespace": space, "labels": labels, "ownerReferences": [owner]}
    main = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"nodeName": NODE, "restartPolicy": "Never", "containers": [main]}
    api.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    container = {"name": "main", "ready": True, "restartCount": 0, "image": "none", "imageID": "none"}
    running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    states = [{**container, "state": running, "started": True}]
    now = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "containerStatuses": states}
    patch(api, f"/api/v1/namespaces/{space}/pods/{name}/status", {"status": now})


def start_node(api: Api, port: int) -> None:
    """The machine with the kubelet."""
    api.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    status: Json = {
        "allocatable": {"nvidia.com/gpu": "8"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    patch(api, f"/api/v1/nodes/{NODE}/status", {"status": status})


def is_there(api: Api, job: str, space: str) -> bool:
    try:
        api.ask("GET", JOBSETS.format(space, job))
    except urllib.error.HTTPError:
        return False
    return True


def patch(api: Api, path: str, body: Json) -> None:
    api.ask("PATCH", path, body, "application/merge-patch+json")
