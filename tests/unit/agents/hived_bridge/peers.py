"""Peers of the bridge on loopback: an API server that keeps pods, and what any of them can do wrong."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Reply = tuple[int, bytes]
# a wrong answer: takes the handler, gives what is answered instead; None: what would have been answered
Fault = Callable[["Peer", str, str], Reply | None]
Json = dict[str, Any]


@dataclass
class Peer:
    """A real HTTP server. calls: METHOD PATH of each request. fault: asked before each answer."""

    calls: list[str] = field(default_factory=list)
    fault: Fault | None = None
    server: ThreadingHTTPServer | None = None

    @property
    def port(self) -> int:
        assert self.server is not None
        return int(self.server.server_address[1])

    def reply(self, method: str, path: str, body: bytes) -> Reply:
        raise NotImplementedError

    def stream(self, path: str) -> Iterator[bytes] | None:
        """Lines without an end, for a path that has them."""
        del path
        return None

    def answered(self, method: str, path: str, body: bytes) -> Reply:
        self.calls.append(f"{method} {path}")
        return (self.fault and self.fault(self, method, path)) or self.reply(method, path, body)


def handler_of(peer: Peer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            if (lines := peer.stream(self.path)) is not None:
                self._pour(lines)
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            status, content = peer.answered(self.command, self.path, body)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _pour(self, lines: Iterator[bytes]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            for line in lines:
                self.wfile.write(line)
                self.wfile.flush()

        do_GET = do_POST = do_DELETE = do_PATCH = _answer  # noqa: N815 # names of the base class

        def log_message(self, *args: Any) -> None:
            pass

    return Handler


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args: Any) -> None:
        """A client that hung up, which is what tests of time-outs are about."""


@contextmanager
def listening(peer: Peer, port: int = 0) -> Iterator[None]:
    """The peer answers; at its end nothing listens there."""
    peer.server = QuietServer(("127.0.0.1", port), handler_of(peer))
    thread = threading.Thread(target=peer.server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield
    finally:
        peer.server.shutdown()
        peer.server.server_close()
        thread.join()


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


@dataclass(repr=False)
class ApiServer(Peer):
    """Pods, nodes and ConfigMaps as the API server has them. deleted: UIDs, in order.

    conditions: UID -> conditions that a patch set.
    linger: a deleted pod stays, marked, as one that ends slowly does.
    """

    pods: dict[str, Json] = field(default_factory=dict)
    nodes: dict[str, Json] = field(default_factory=dict)
    maps: dict[str, dict[str, str]] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    conditions: dict[str, list[Json]] = field(default_factory=dict)
    linger: bool = False
    page: int = 2
    version: int = 10
    watchers: dict[str, list[queue.SimpleQueue[bytes]]] = field(default_factory=lambda: {"pods": [], "nodes": []})
    lock: threading.RLock = field(default_factory=threading.RLock)

    def add_node(self, name: str) -> None:
        conditions = [{"type": "Ready", "status": "True"}]
        node = {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {}, "status": {"conditions": conditions}}
        self._changed("nodes", "ADDED", {"kind": "Node", "apiVersion": "v1", **node})
        self.nodes[name] = node

    def add_pod(self, name: str, uid: str = "", node: str = "", namespace: str = "default", **more: Any) -> Json:
        metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", **more.pop("metadata", {})}
        spec = {**({"nodeName": node} if node else {}), **more.pop("spec", {})}
        pod = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
        with self.lock:
            self.pods[f"{namespace}/{name}"] = pod
            self._changed("pods", "ADDED", pod)
        return pod

    def uids(self) -> set[str]:
        return {pod["metadata"]["uid"] for pod in self.pods.values()}

    def reply(self, method: str, path: str, body: bytes) -> Reply:
        url = urlsplit(path)
        words = [unquote(word) for word in url.path.strip("/").split("/")]
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        with self.lock:
            match method, words:
                case "GET", ["api", "v1", ("pods" | "nodes") as kind]:
                    return self._list(kind, query)
                case _, ["api", "v1", "namespaces", namespace, "pods", name, *below]:
                    change = {"DELETE": self._delete, "POST": self._bind, "PATCH": self._set_status}[method]
                    assert below == {"DELETE": [], "POST": ["binding"], "PATCH": ["status"]}[method]
                    return change(f"{namespace}/{name}", json.loads(body or b"{}"))
                case "GET", ["api", "v1", "namespaces", namespace, "configmaps", name]:
                    held = self.maps.get(f"{namespace}/{name}")
                    return _missing() if held is None else (200, encoded({"data": held}))
                case "PATCH", ["api", "v1", "namespaces", namespace, "configmaps", name]:
                    self.maps[f"{namespace}/{name}"].update(json.loads(body)["data"])
                    return 200, b"{}"
        return _missing()

    def stream(self, path: str) -> Iterator[bytes] | None:
        url = urlsplit(path)
        if "watch=" not in url.query:
            return None
        kind = url.path.rpartition("/")[2]
        return self._watch(kind)

    def _watch(self, kind: str) -> Iterator[bytes]:
        events: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        with self.lock:
            self.watchers[kind].append(events)
            # between its list and its watch nothing is lost
            for item in self._items(kind):
                events.put(encoded({"type": "ADDED", "object": item}) + b"\n")
        while True:
            yield events.get()

    def _items(self, kind: str) -> list[Json]:
        name = {"pods": "Pod", "nodes": "Node"}[kind]
        return [{"kind": name, "apiVersion": "v1", **item} for item in list(getattr(self, kind).values())]

    def _list(self, kind: str, query: dict[str, str]) -> Reply:
        items = self._items(kind)
        if "fieldSelector" in query:
            node = query["fieldSelector"].removeprefix("spec.nodeName=")
            items = [item for item in items if item["spec"].get("nodeName", "") == node]
        start = int(query.get("continue", "0"))
        end = start + self.page if "limit" in query else len(items)
        more = {"continue": str(end)} if end < len(items) else {}
        kind_name = {"pods": "PodList", "nodes": "NodeList"}[kind]
        metadata = {"resourceVersion": str(self.version), **more}
        return 200, encoded({"kind": kind_name, "apiVersion": "v1", "metadata": metadata, "items": items[start:end]})

    def _set_status(self, key: str, patch: Json) -> Reply:
        if (pod := self.pods.get(key)) is None:
            return _missing()
        if patch["metadata"]["uid"] != pod["metadata"]["uid"]:
            return 409, b"{}"
        pod["status"] |= patch["status"]
        self.conditions[pod["metadata"]["uid"]] = patch["status"]["conditions"]
        return 200, encoded(pod)

    def _delete(self, key: str, options: Json) -> Reply:
        pod = self.pods.get(key)
        if pod is None:
            return _missing()
        if options["preconditions"]["uid"] != pod["metadata"]["uid"]:
            return 409, b'{"kind": "Status", "reason": "Conflict"}'
        self.deleted.append(pod["metadata"]["uid"])
        if self.linger:
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self._changed("pods", "MODIFIED", pod)
        else:
            self.remove(key)
        return 200, b"{}"

    def remove(self, key: str) -> None:
        with self.lock:
            self._changed("pods", "DELETED", self.pods.pop(key))

    def _bind(self, key: str, binding: Json) -> Reply:
        pod = self.pods[key]
        pod["spec"]["nodeName"] = binding["target"]["name"]
        pod["metadata"].setdefault("annotations", {}).update(binding["metadata"].get("annotations", {}))
        self._changed("pods", "MODIFIED", pod)
        return 201, b'{"kind": "Status", "apiVersion": "v1", "status": "Success"}'

    def _changed(self, kind: str, event: str, item: Json) -> None:
        with self.lock:
            self.version += 1
            item["metadata"]["resourceVersion"] = str(self.version)
            line = encoded({"type": event, "object": item}) + b"\n"
            for events in self.watchers[kind]:
                events.put(line)


def _missing() -> Reply:
    return 404, b'{"kind": "Status", "reason": "NotFound"}'


def slow(seconds: float) -> Fault:
    def fault(peer: Peer, method: str, path: str) -> Reply | None:
        time.sleep(seconds)
        return None

    return fault


def first(count: int, reply: Reply) -> Fault:
    """The first answers are that; then it works."""
    left = [reply] * count

    def fault(peer: Peer, method: str, path: str) -> Reply | None:
        return left.pop() if left else None

    return fault
