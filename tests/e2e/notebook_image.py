"""Makes an image of JupyterLab: run on a machine, as root, NAME PACKAGES. It needs python_image.py beside it.

PACKAGES: a folder of wheels that are unpacked for the machine's own Python.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

from python_image import add, layer, libraries  # type: ignore[import-not-found] # beside it on the machine

PLACE = "opt/packages"
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/root",
    "SHELL": "/bin/sh",
    "PYTHONPATH": f"/{PLACE}",
    "PYTHONDONTWRITEBYTECODE": "1",
    "JUPYTER_CONFIG_PATH": f"/{PLACE}/etc/jupyter",
    "JUPYTER_PATH": f"/{PLACE}/share/jupyter",
    "JUPYTERLAB_DIR": f"/{PLACE}/share/jupyter/lab",
}


def image(name: str, packages: Path, target: Path) -> None:
    """Writes what `ctr images import` reads."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(packages, PLACE)
        # what the compiled ones need of the machine
        needed = set().union(*map(libraries, packages.rglob("*.so*")))
        for library in sorted(one for one in needed if one.startswith(("/lib/", "/usr/lib/"))):
            place = library if library.startswith("/usr/") else f"/usr{library}"
            add(archive, place, Path(library).read_bytes(), 0o755)
    layers = [layer(b""), buffer.getvalue()]
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": [f"{key}={value}" for key, value in ENVIRONMENT.items()], "Cmd": ["python3"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(one).hexdigest()}" for one in layers]},
    }
    files = [f"layer{number}.tar.gz" for number in range(len(layers))]
    with tarfile.open(target, mode="w") as archive:
        for file, content in zip(files, layers, strict=True):
            add(archive, file, gzip.compress(content, 1, mtime=0), 0o644)
        add(archive, "config.json", json.dumps(config).encode(), 0o644)
        manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": files}]
        add(archive, "manifest.json", json.dumps(manifest).encode(), 0o644)


if __name__ == "__main__":
    made = Path(sys.argv[2]).with_suffix(".image")
    image(sys.argv[1], Path(sys.argv[2]), made)
    subprocess.run(["ctr", "--namespace=k8s.io", "images", "import", str(made)], check=True)
    made.unlink()
