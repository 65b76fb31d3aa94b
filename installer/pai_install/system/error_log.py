"""Logs of internal errors, in the folder for temporary files."""

from __future__ import annotations

import contextlib
import os
import platform
import tempfile
import traceback
from pathlib import Path

from pai_install import __version__

_KEPT = 10


def write_error_log(error: BaseException, verb: str) -> Path:
    """Writes the log of an internal error, for its user alone. Keeps the last ten of this user."""
    descriptor, name = tempfile.mkstemp(prefix="pai-install-", suffix=".log")
    with os.fdopen(descriptor, "w") as log:
        log.write(f"pai-install {__version__}, Python {platform.python_version()}, {platform.platform()}\n")
        log.write(f"verb: {verb}\n")
        traceback.print_exception(error, file=log)
    with contextlib.suppress(OSError):
        _drop_old_logs(Path(name))
    return Path(name)


def _drop_old_logs(newest: Path) -> None:
    alike = [path for path in newest.parent.glob("pai-install-*.log") if path.lstat().st_uid == os.geteuid()]
    for old in sorted(alike, key=lambda path: path.lstat().st_mtime)[:-_KEPT]:
        old.unlink(missing_ok=True)
