"""Writing files so that a crash never leaves half of one, and secrets are never world-readable."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from pai_install.errors import ExitCode, PaiError


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Adds this path to an OSError inside the block, because errors of a full disk have none."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def temporary_prefix(name: str) -> str:
    """Returns the start of the name under which `write_atomic` first writes a file. A killed program leaves it."""
    return f".{name}."


def write_atomic(path: Path, content: str | bytes, *, mode: int = 0o644) -> None:
    """Replaces `path` with `content` atomically. Missing parent folders are created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    with naming(path):
        descriptor, temporary = tempfile.mkstemp(prefix=temporary_prefix(path.name), dir=path.parent)
    try:
        with naming(path), os.fdopen(descriptor, "wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def require_regular(path: Path) -> None:
    """Raises OSError for anything but a file with an end: a pipe would block, and a device never ends."""
    if not path.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file")


def read_bounded(path: Path, most: int, *, links: bool = True) -> bytes:
    """Returns the content of a regular file. Raises OSError for a device, a pipe, a larger file, or a refused link."""
    # A pipe without a writer would block at its opening.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW)
    with os.fdopen(os.open(path, flags), "rb") as handle:
        found = os.fstat(handle.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB", str(path))
        return handle.read(most)


def refuse_links(*paths: Path) -> None:
    """Raises PaiError for a folder that is a link.

    A site of someone else could lead it to any folder, which would get other permissions and files.
    """
    for path in paths:
        if path.is_symlink():
            raise PaiError(
                f"cannot use {path}: it is a link",
                code="state-folder-link",
                remedy="remove the link, or replace it with a folder",
                exit_code=ExitCode.USAGE,
            )


def private_folder(path: Path) -> None:
    """Makes a folder where it is missing, for its owner only, and keeps it out of version control.

    Raises PaiError for a link.
    """
    refuse_links(path)
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.chmod(0o700)
    if not (path / ".gitignore").exists():
        write_atomic(path / ".gitignore", "*\n")


def write_secret(path: Path, content: str | bytes) -> None:
    """As `write_atomic`, readable by the owner only (0600)."""
    write_atomic(path, content, mode=0o600)


def append_secret(path: Path) -> TextIO:
    """Opens a text file to add to, made readable by the owner only (0600) when it is new."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8")
