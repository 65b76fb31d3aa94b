"""Images made here, pushed to the real registry program and pulled from it again."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from pai_install.components.image import ImageConfig, LayerEntry, write_image, write_layer
from pai_install.components.progress import silent
from pai_install.components.registry_client import Reference, pull


def _send(method: str, url: str, body: bytes, content_type: str) -> str:
    request = urllib.request.Request(  # noqa: S310 - our own server
        url, body, {"Content-Type": content_type}, method=method
    )
    with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310 - our own server
        return str(response.headers.get("Location", ""))


def push(layout: Path, url: str, repository: str, tag: str) -> None:
    (described,) = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = (layout / "blobs/sha256" / described["digest"].removeprefix("sha256:")).read_bytes()
    document = json.loads(manifest)
    for blob in [document["config"], *document["layers"]]:
        data = (layout / "blobs/sha256" / blob["digest"].removeprefix("sha256:")).read_bytes()
        location = _send("POST", f"{url}/v2/{repository}/blobs/uploads/", b"", "application/octet-stream")
        _send("PUT", f"{location}&digest={blob['digest']}", data, "application/octet-stream")
    _send("PUT", f"{url}/v2/{repository}/manifests/{tag}", manifest, described["mediaType"])


def test_an_image_survives_the_way_through_a_registry(serve: Callable[..., str], tmp_path: Path) -> None:
    registry = serve(readonly=False)
    layers = [
        write_layer([LayerEntry("etc/passwd", 0o644, b"root:x:0:0::/:\n")], tmp_path / "layers"),
        write_layer([LayerEntry("bin/program", 0o755, b"\x7fELF" * 100_000)], tmp_path / "layers"),
    ]
    digest = write_image(tmp_path / "made", layers, ImageConfig(("/bin/program",)), "v1", "amd64")
    push(tmp_path / "made", registry, "pai/program", "v1")
    place = Reference(registry, "pai/program", "v1")
    assert pull(place, "amd64", tmp_path / "pulled", tmp_path / "downloads", silent) == digest
    blobs = [
        {path.name: path.read_bytes() for path in (tmp_path / name / "blobs/sha256").iterdir()}
        for name in ("made", "pulled")
    ]
    assert blobs[0] == blobs[1]
    assert (tmp_path / "made/index.json").read_bytes() == (tmp_path / "pulled/index.json").read_bytes()
