"""An image of a test's own: a machine does not ask for blobs that it has for another image."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any


def own_image(layout: Path, folder: Path, name: str) -> Path:
    """Writes a copy of the one image of an OCI layout below `folder`; no blob of it is one of the original's.

    name: other names give other blobs.
    """
    index: dict[str, Any] = json.loads((layout / "index.json").read_bytes())
    (entry,) = index["manifests"]
    manifest: dict[str, Any] = json.loads(_blob(layout, entry["digest"]).read_bytes())
    config = json.loads(_blob(layout, manifest["config"]["digest"]).read_bytes())
    config["config"] = {**config.get("config", {}), "Labels": {"made-for": name}}
    manifest["config"].update(_put(folder, json.dumps(config).encode()))
    for layer in manifest["layers"]:
        files = gzip.decompress(_blob(layout, layer["digest"]).read_bytes())
        layer.update(_put(folder, gzip.compress(files, mtime=zlib.crc32(name.encode()))))
    entry.update(_put(folder, json.dumps(manifest).encode()))
    (folder / "index.json").write_text(json.dumps(index))
    return folder


def _blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")


def _put(layout: Path, blob: bytes) -> dict[str, Any]:
    """Writes a blob; what a manifest or an index says of it."""
    digest = f"sha256:{hashlib.sha256(blob).hexdigest()}"
    path = _blob(layout, digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(blob)
    return {"digest": digest, "size": len(blob)}
