"""Makes an image of JupyterLab: run on a machine, as root, NAME PACKAGES. It needs python_image.py beside it.

PACKAGES: a folder of wheels that are unpacked for the machine's own Python.
"""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

from python_image import add, keep, layer, libraries  # type: ignore[import-not-found] # beside it on the machine

PLACE = "opt/packages"
ENVIRONMENT = {
    "HOME": "/root",
    "SHELL": "/bin/sh",
    "PYTHONPATH": f"/{PLACE}",
    "JUPYTER_CONFIG_PATH": f"/{PLACE}/etc/jupyter",
    "JUPYTER_PATH": f"/{PLACE}/share/jupyter",
    "JUPYTERLAB_DIR": f"/{PLACE}/share/jupyter/lab",
}


def packed(packages: Path) -> bytes:
    """The wheels as a tar archive, with what the compiled ones need of the machine."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(packages, PLACE)
        needed = set().union(*map(libraries, packages.rglob("*.so*")))
        for library in sorted(one for one in needed if one.startswith(("/lib/", "/usr/lib/"))):
            place = library if library.startswith("/usr/") else f"/usr{library}"
            add(archive, place, Path(library).read_bytes(), 0o755)
    return buffer.getvalue()


if __name__ == "__main__":
    keep(sys.argv[1], [layer(b""), packed(Path(sys.argv[2]))], ENVIRONMENT)
