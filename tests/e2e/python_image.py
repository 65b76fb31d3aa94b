"""Makes an image of a machine's own Python, with one program in it: run on a machine, as root, NAME PROGRAM.

The image is made of the machine's files, so all machines of one suite have the same one.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

PROGRAMS = {"/usr/bin/python3": sys.executable, "/usr/bin/sh": "/usr/bin/dash"}
LEFT_OUT = re.compile(r"/(__pycache__|test|idlelib|ensurepip|lib2to3|config-[^/]+)(/|$)")


def libraries(program: Path) -> set[str]:
    """The shared libraries that a file needs, as the loader finds them."""
    said = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"(/\S+) \(0x", said))


def files() -> dict[str, Path]:
    """Path in the image -> file of the machine."""
    found = {name: Path(program).resolve() for name, program in PROGRAMS.items()}
    standard = Path(sysconfig.get_path("stdlib"))
    inside = [path for path in standard.rglob("*") if path.is_file() and not LEFT_OUT.search(str(path))]
    found |= {str(path): path.resolve() for path in inside}
    # what the C library loads when a thread ends
    found |= {str(path): path.resolve() for path in Path("/usr/lib").glob("*/libgcc_s.so.1")}
    programs = [found[name] for name in PROGRAMS]
    for library in set().union(*map(libraries, [*programs, *(it for it in inside if it.suffix == ".so")])):
        found[library.replace("/lib/", "/usr/lib/", 1) if library.startswith("/lib/") else library] = Path(library)
    return found


def layer(program: bytes) -> bytes:
    """The files as a tar archive, the same at any time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in ("bin", "lib"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            archive.addfile(link)
        for name in ("root", "tmp"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o777
            archive.addfile(folder)
        for name, path in sorted(files().items()):
            add(archive, name, path.read_bytes(), 0o755)
        add(archive, "/opt/program.py", program, 0o644)
    return buffer.getvalue()


def add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name.lstrip("/"))
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def image(name: str, layers: Sequence[bytes], environment: Mapping[str, str]) -> bytes:
    """What `docker load` and `ctr images import` read. layers: tar archives."""
    digests = [f"sha256:{hashlib.sha256(one).hexdigest()}" for one in layers]
    variables = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", **environment}
    config = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[sysconfig.get_platform().rpartition("-")[2]],
        "os": "linux",
        "config": {"Env": [f"{key}={value}" for key, value in variables.items()], "Cmd": ["python3"]},
        "rootfs": {"type": "layers", "diff_ids": digests},
    }
    packed = {f"layer{number}.tar.gz": gzip.compress(one, 1, mtime=0) for number, one in enumerate(layers)}
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": list(packed)}]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for file, content in packed.items():
            add(archive, file, content, 0o644)
        add(archive, "config.json", json.dumps(config).encode(), 0o644)
        add(archive, "manifest.json", json.dumps(manifest).encode(), 0o644)
    return buffer.getvalue()


def keep(name: str, layers: Sequence[bytes], environment: Mapping[str, str] | None = None) -> None:
    """Makes an image, and gives it to the machine's containerd."""
    words = ["ctr", "--namespace=k8s.io", "images", "import", "-"]
    subprocess.run(words, input=image(name, layers, environment or {}), check=True)


if __name__ == "__main__":
    keep(sys.argv[1], [layer(Path(sys.argv[2]).read_bytes())])
