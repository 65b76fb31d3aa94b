"""Requirements of the controller host for building components, as names of Debian packages."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from pai_install.errors import PaiError

# how to see that a package is there, also when it was not installed as that package
PROBES = {
    "gcc": "gcc",
    "pkg-config": "pkg-config",
    "libc6-dev": "/usr/include/stdlib.h",
    "libseccomp-dev": "/usr/include/seccomp.h",
    "apt": "apt-get",
    "dpkg": "dpkg-deb",
    "python3-pip": "pip3",
}


def missing(packages: Iterable[str]) -> tuple[str, ...]:
    """Those of the packages that the controller host lacks, sorted."""
    return tuple(sorted(name for name in set(packages) if not _present(PROBES[name])))


def _present(probe: str) -> bool:
    return Path(probe).exists() if probe.startswith("/") else shutil.which(probe) is not None


def check_disk(folder: Path, needed_mb: int) -> None:
    """Raises PaiError with both sizes if the file system of `folder` has too little free space."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free_mb = shutil.disk_usage(there).free >> 20
    if free_mb < needed_mb:
        raise PaiError(
            f"cannot build components: {folder} has {free_mb / 1024:.1f} GiB free, and {needed_mb / 1024:.1f}"
            " GiB are needed",
            code="disk-space-low",
            remedy="free some space, or set XDG_CACHE_HOME to another disk",
        )
