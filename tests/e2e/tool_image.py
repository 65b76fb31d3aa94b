"""Makes an image with Python, a shell, common tools, and the SSH server of a machine: run on a machine, as root, NAME.

It needs python_image.py beside it.
"""

from __future__ import annotations

import io
import shutil
import sys
import tarfile
from pathlib import Path

from python_image import add, keep, layer, libraries  # type: ignore[import-not-found] # beside it on the machine

TOOLS = (
    *("bash", "cat", "chmod", "cp", "env", "grep", "gzip", "head", "ls", "mkdir", "rm", "sha256sum", "sleep", "tar"),
    *("sshd", "ssh-keygen"),
)
FILES = {
    "etc/passwd": "root:*:0:0:root:/root:/bin/bash\nsshd:*:101:65534::/run/sshd:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\n",
}


def tools() -> bytes:
    """The programs and their libraries as a tar archive."""
    found = {f"/usr/bin/{name}": Path(str(shutil.which(name))).resolve() for name in TOOLS}
    found["/usr/sbin/sshd"] = found.pop("/usr/bin/sshd")
    found["/usr/bin/python"] = Path(sys.executable).resolve()
    # what sshd starts, in newer versions
    found |= {str(path): path for path in Path("/usr/lib/openssh").glob("sshd-*")}
    for library in set().union(*map(libraries, found.values())):
        found[library.replace("/lib/", "/usr/lib/", 1) if library.startswith("/lib/") else library] = Path(library)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, path in sorted(found.items()):
            add(archive, name, path.read_bytes(), 0o755)
        for name, content in FILES.items():
            add(archive, name, content.encode(), 0o644)
    return buffer.getvalue()


if __name__ == "__main__":
    keep(sys.argv[1], [layer(b""), tools()])
