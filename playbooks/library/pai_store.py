#!/usr/bin/python
"""Ansible module: fill the component store (its action sends missing content from the controller host)."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_store
short_description: Fill the component store from the controller host
description:
  - In a playbook, set I(files) and I(images). The action of the same name sends only missing ones.
  - The registry is read-only. Uploads go through a second registry over the same folder, which runs for
    that moment and listens where only root can reach it.
options:
  url: {description: The registry., type: str, required: true}
  ca: {description: PEM of the authorities that its certificate is checked with., type: str, required: true}
  files: {description: "Files on the controller host: name, path, sha256.", type: list, elements: dict}
  images:
    description: "OCI layouts on the controller host: repository, tag, layout, manifest_digest."
    type: list
    elements: dict
  data: {description: Where the registry keeps its blobs., type: path, required: true}
  program: {description: The registry itself., type: path, default: /usr/local/bin/pai-registry}
  state: {description: The action's own step., type: str, choices: [missing, push], default: missing}
  blobs: {description: The action's own., type: list, elements: dict, default: []}
  manifests: {description: The action's own., type: list, elements: dict, default: []}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Seed the registry
  pai_store:
    url: "https://127.0.0.1:5080"
    ca: "{{ component_store_ca }}"
    data: /var/lib/pai-install/store
    files: []
    images: []
"""
RETURN = r"""
managed: {description: Expectations for pai_state., type: list, elements: dict, returned: always}
sent: {description: Repositories that were filled., type: list, elements: str, returned: always}
"""

import base64
import ctypes
import glob
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_digests import file_sha256
from ansible.module_utils.pai_registry import only_these

MANIFEST_TYPES = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"


# seconds until the registry for uploads must listen
START_TIMEOUT_S = 30


class SocketConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("registry", timeout=120)
        self.path = path

    def connect(self) -> None:
        """Opens the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def connection(url: str, ca: str) -> http.client.HTTPConnection:
    """Returns a connection to the store with one of these authorities (PEM). Raises ssl.SSLError for an invalid one."""
    return http.client.HTTPSConnection(urllib.parse.urlsplit(url).netloc, timeout=120, context=only_these(ca))


class Registry:
    """The registry's HTTP API, over one connection."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Sends one request and returns status and headers."""
        self.connection.request(method, path, body=body, headers=headers or {})
        answer = self.connection.getresponse()
        text = answer.read()
        # 404 is the answer for content that is missing, which is what the caller asks.
        if answer.status >= 400 and answer.status != 404:
            raise OSError(f"{method} {path}: {answer.status} {text[:300].decode(errors='replace')}")
        return answer.status, answer.headers

    def has_blob(self, blob: dict[str, Any]) -> bool:
        """Whether the repository has the blob."""
        return self.request("HEAD", f"/v2/{blob['repository']}/blobs/{blob['digest']}")[0] == 200

    def has_manifest(self, manifest: dict[str, Any]) -> bool:
        """Whether the tag names exactly this manifest."""
        path = f"/v2/{manifest['repository']}/manifests/{manifest['tag']}"
        status, headers = self.request("HEAD", path, headers={"Accept": MANIFEST_TYPES})
        # A tag may exist and name the manifest of an older version.
        return status == 200 and headers.get("Docker-Content-Digest") == manifest["digest"]

    def push_blob(self, blob: dict[str, Any]) -> None:
        """Uploads a blob. The registry verifies its digest."""
        _status, headers = self.request("POST", f"/v2/{blob['repository']}/blobs/uploads/")
        # The registry names the address of an upload, with a state of its own in the query.
        location = urllib.parse.urlsplit(headers["Location"])
        query = location.query + ("&" if location.query else "") + urllib.parse.urlencode({"digest": blob["digest"]})
        target = f"{location.path}?{query}"
        if "content" in blob:
            self.request("PUT", target, base64.b64decode(blob["content"]))
            return
        size = {"Content-Length": str(os.stat(blob["path"]).st_size), "Content-Type": "application/octet-stream"}
        with open(blob["path"], "rb") as handle:
            self.request("PUT", target, handle, size)

    def push_manifest(self, manifest: dict[str, Any]) -> None:
        """Tags."""
        path = f"/v2/{manifest['repository']}/manifests/{manifest['tag']}"
        content = base64.b64decode(manifest["content"])
        self.request("PUT", path, content, {"Content-Type": manifest["media_type"]})


@contextmanager
def writer(program: str, data: str) -> Iterator[Registry]:
    """Yields a writable registry over the same folder, for root only. It ends with the block."""
    folder = tempfile.mkdtemp(prefix="pai-store-")  # 0700
    path, config = os.path.join(folder, "socket"), os.path.join(folder, "config.json")
    storage = {"filesystem": {"rootdirectory": data}, "maintenance": {"uploadpurging": {"enabled": False}}}
    settings = {"version": 0.1, "log": {"level": "warn", "accesslog": {"disabled": True}}, "storage": storage}
    with open(config, "w", encoding="utf-8") as handle:
        json.dump({**settings, "http": {"net": "unix", "addr": path}}, handle)  # JSON is YAML
    with open(os.path.join(folder, "log"), "w+", encoding="utf-8") as log:
        process = start([program, "serve", config], log)
        try:
            wait_for(process, path, log)
            yield Registry(SocketConnection(path))
        finally:
            process.terminate()
            process.wait()
            shutil.rmtree(folder, ignore_errors=True)


def start(argv: list[str], log: Any) -> subprocess.Popen[bytes]:
    """Starts a program that ends when this one does, however that may be."""
    libc, parent_death_signal = ctypes.CDLL(None), 1
    # Without this, distribution tries to send traces to a collector on localhost and logs each failure.
    environment = {**os.environ, "OTEL_TRACES_EXPORTER": "none"}
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=environment,
        preexec_fn=lambda: libc.prctl(parent_death_signal, signal.SIGKILL),  # noqa: PLW1509 - no threads here
    )


def wait_for(process: subprocess.Popen[bytes], path: str, log: Any) -> None:
    """Waits until the socket takes connections. Raises OSError with the program's words when it does not."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as probe:
            # The socket file appears before the program accepts connections.
            if probe.connect_ex(path) == 0:
                return
        time.sleep(0.05)
    log.seek(0)
    raise OSError(f"the upload registry does not start: {log.read()[-500:].strip()}")


def blob_path(data: str, digest: str) -> str:
    """The file in which the registry keeps a blob."""
    word = digest.split(":")[1]
    return f"{data}/docker/registry/v2/blobs/sha256/{word[:2]}/{word}/data"


def damaged(data: str, digest: str) -> bool:
    """Returns whether the registry has different bytes under a blob's digest, which it would serve as correct."""
    path = blob_path(data, digest)
    return os.path.exists(path) and file_sha256(path) != digest.split(":")[1]


def clear_damaged(data: str, blobs: list[dict[str, Any]]) -> None:
    """Deletes damaged blobs, because the registry does not replace existing ones."""
    for digest in {blob["digest"] for blob in blobs}:
        if damaged(data, digest):
            os.unlink(blob_path(data, digest))


def clear_uploads(data: str) -> None:
    """Removes unfinished uploads of an interrupted run."""
    for folder in glob.glob(f"{data}/docker/registry/v2/repositories/**/_uploads", recursive=True):
        shutil.rmtree(folder, ignore_errors=True)


def lost(registry: Registry, data: str, blob: dict[str, Any]) -> bool:
    """Whether a blob has to be sent."""
    return not registry.has_blob(blob) or damaged(data, blob["digest"])


def push(registry: Registry, blobs: list[dict[str, Any]], manifests: list[dict[str, Any]]) -> None:
    """Uploads blobs, then their manifests. Deletes files after their last use."""
    for index, blob in enumerate(blobs):
        registry.push_blob(blob)
        path = blob.get("path")
        # Each file is in the store and in a temporary folder. A disk need not hold both of all files at once.
        if path and all(later.get("path") != path for later in blobs[index + 1 :]):
            os.unlink(path)
    # A registry refuses a manifest whose blobs are missing, so manifests come last.
    for manifest in manifests:
        registry.push_manifest(manifest)


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "ca": {"type": "str", "required": True},
            "files": {"type": "list", "elements": "dict"},
            "images": {"type": "list", "elements": "dict"},
            "data": {"type": "path", "required": True},
            "program": {"type": "path", "default": "/usr/local/bin/pai-registry"},
            "state": {"type": "str", "choices": ["missing", "push"], "default": "missing"},
            "blobs": {"type": "list", "elements": "dict", "default": []},
            "manifests": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )
    blobs, manifests, data = module.params["blobs"], module.params["manifests"], module.params["data"]
    try:
        if module.params["state"] == "push":
            clear_uploads(data)
            clear_damaged(data, blobs)
            with writer(module.params["program"], data) as registry:
                push(registry, blobs, manifests)
            module.exit_json(changed=True)
        registry = Registry(connection(module.params["url"], module.params["ca"]))
        module.exit_json(
            changed=False,
            missing_blobs=[index for index, blob in enumerate(blobs) if lost(registry, data, blob)],
            missing_manifests=[index for index, entry in enumerate(manifests) if not registry.has_manifest(entry)],
        )
    except (ConnectionRefusedError, ssl.SSLError) as error:
        if not module.check_mode:
            module.fail_json(msg=f"the component store at {module.params['url']} does not answer: {error}")
        # it does not run yet, or as an earlier version set it up
        everything = {"missing_blobs": list(range(len(blobs))), "missing_manifests": list(range(len(manifests)))}
        module.exit_json(changed=False, **everything)
    except (OSError, http.client.HTTPException) as error:
        module.fail_json(msg=f"the component store at {module.params['url']}: {error}")


if __name__ == "__main__":
    main()
