"""The site's services-configuration.yaml as commands write it."""

from __future__ import annotations

import os
from pathlib import Path

from pai_install.site.load import SERVICES
from pai_install.system.files import write_atomic

_NEW_FILE_MODE = 0o600  # a password may be written into it


def services_file(site_dir: Path) -> Path:
    """Returns the file, or the target of a link."""
    path = site_dir / SERVICES
    return path.resolve() if path.is_symlink() else path


def write_services(path: Path, text: str) -> None:
    """Keeps mode and owner of a file that is there."""
    old = path.stat() if path.exists() else None
    write_atomic(path, text, mode=_NEW_FILE_MODE if old is None else old.st_mode & 0o777)
    if old is not None and (old.st_uid, old.st_gid) != (path.stat().st_uid, path.stat().st_gid):
        os.chown(path, old.st_uid, old.st_gid)
