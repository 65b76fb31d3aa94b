"""Ownership of managed files: only root may write them and their folders. Modules run as root."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import Any

OTHERS_MAY_WRITE = 0o002
FILES = ("file", "merged")  # kinds of expectations on files that are root's


def foreign_owner(path: str) -> str:
    """Returns a sentence if root does not own an existing file, or ""."""
    try:
        info = os.stat(path)
    except OSError:
        return ""
    seen = (info.st_uid, info.st_gid)
    return "" if seen == _root() else f"{path} belongs to {seen[0]}:{seen[1]}, not to root"


def open_folder(path: str) -> str:
    """Returns a sentence if another user than root could replace files of a folder.

    Its group is ignored: distributions give /usr/local to a group without members.
    """
    try:
        info = os.stat(path)
    except OSError:
        return f"{path} is missing"
    if info.st_uid != _root()[0]:
        return f"{path} belongs to {info.st_uid}, not to root"
    mode = stat.S_IMODE(info.st_mode)
    return f"{path} has mode {mode:04o}: everybody may write" if mode & OTHERS_MAY_WRITE else ""


def folders(expectations: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Expectations on the folders of all files in the expectations."""
    paths = {os.path.dirname(item["path"]) for item in expectations if item["kind"] in FILES}
    return [{"kind": "folder", "path": path} for path in sorted(paths)]


def restore_ownership(expectations: Iterable[dict[str, Any]], *, check: bool) -> list[str]:
    """Gives files and folders to root and returns their paths. check: dry run."""
    changed = []
    for item in expectations:
        path = item.get("path", "")
        if item["kind"] in FILES and foreign_owner(path):
            changed.append(path)
            if not check:
                os.chown(path, *_root())
        elif item["kind"] == "folder" and os.path.isdir(path) and open_folder(path):
            changed.append(path)
            if not check:
                os.chown(path, _root()[0], -1)
                os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) & ~OTHERS_MAY_WRITE)
    return changed


def _root() -> tuple[int, int]:
    return os.geteuid(), os.getegid()
