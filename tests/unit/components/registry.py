"""A small image put on a test web server the way a registry serves it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conftest import WebServer

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def serve_image(web: WebServer, repository: str, tag: str, *, architectures: tuple[str, ...] = ()) -> str:
    """Serves an image with one layer; with architectures, below an index. Gives the manifest's digest."""
    base = f"/v2/{repository}"
    config, layer = json.dumps({"of": repository}).encode(), f"layer of {repository}".encode() * 100
    for data in (config, layer):
        web.pages[f"{base}/blobs/{digest(data)}"] = data
    document: dict[str, Any] = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"digest": digest(config), "size": len(config)},
        "layers": [{"digest": digest(layer), "size": len(layer)}],
    }
    manifest = json.dumps(document).encode()
    web.pages[f"{base}/manifests/{digest(manifest)}"] = manifest
    web.pages[f"{base}/manifests/{tag}"] = manifest
    if architectures:
        platforms = [
            {"digest": digest(manifest), "platform": {"os": "linux", "architecture": architecture}}
            for architecture in architectures
        ]
        web.pages[f"{base}/manifests/{tag}"] = json.dumps({"manifests": platforms}).encode()
    return digest(manifest)
