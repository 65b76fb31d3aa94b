"""An image of HiveD out of its program, in the form that `docker save` writes: no registry can be asked for its own."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

# where the image of its makers has it
PLACE = "opt/hivedscheduler/hivedscheduler/hivedscheduler"
TAG = "hivedscheduler/hivedscheduler:v0.3.4"


def write_image(program: Path, path: Path) -> None:
    """program: static, for linux/amd64."""
    layer = _archive({PLACE: program.read_bytes()}, mode=0o755)
    digest = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": [f"/{PLACE}"]},
        "rootfs": {"type": "layers", "diff_ids": [digest]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [TAG], "Layers": ["layer.tar"]}]
    members = {"manifest.json": json.dumps(manifest).encode(), "config.json": json.dumps(config).encode()}
    path.write_bytes(_archive({**members, "layer.tar": layer}, mode=0o644))


def _archive(members: dict[str, bytes], *, mode: int) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()
