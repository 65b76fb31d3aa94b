"""Files -> the archive of a job's code. Pure."""

from __future__ import annotations

import gzip
import hashlib
import io
import posixpath
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import IO

from pai_install.jobs.code import MAX_ARCHIVE, CodeArchive, StoredCode

# more takes twice the time for a few percent
_LEVEL = 6


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file, by its name below the work folder. link: the target of a symbolic link, "" for a file.

    source, size: an open file in place of content.
    """

    name: str
    content: bytes = field(default=b"", repr=False)
    link: str = ""
    runs: bool = False
    source: IO[bytes] | None = field(default=None, repr=False)
    size: int = 0


@dataclass(frozen=True, slots=True)
class PackedCode:
    """An archive in an open file. unpacked: bytes of its tar. largest: its largest files, as text."""

    file: IO[bytes]
    digest: str
    size: int
    unpacked: int
    largest: str = ""

    @property
    def small(self) -> CodeArchive | None:
        """The archive for ConfigMaps, None for a larger one."""
        if self.size > MAX_ARCHIVE:
            return None
        self.file.seek(0)
        return CodeArchive(self.file.read())

    def on(self, storage: str) -> StoredCode:
        """The archive on a storage."""
        return StoredCode(self.digest, storage, self.size, self.unpacked)


def pack(output: IO[bytes], files: Iterable[CodeFile]) -> PackedCode:
    """Writes the archive of files, in their order. Raises OSError as `write_archive`."""
    unpacked = write_archive(output, files)
    size = output.tell()
    output.seek(0)
    digest = hashlib.file_digest(output, "sha256").hexdigest()  # type: ignore[arg-type] # also a temporary file
    return PackedCode(output, digest, size, unpacked)


def write_archive(output: IO[bytes], files: Iterable[CodeFile]) -> int:
    """Writes the archive of files, and returns the bytes of its tar. Raises OSError for a file that shrinks."""
    # No time and no name, so that equal files give an equal digest.
    with gzip.GzipFile(fileobj=output, mode="wb", mtime=0, filename="", compresslevel=_LEVEL) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for one in files:
                entry = tarfile.TarInfo(one.name)
                if one.link:
                    entry.type, entry.linkname = tarfile.SYMTYPE, one.link
                entry.size = one.size if one.source is not None else len(one.content)
                # Modes of the user's machine depend on its umask.
                entry.mode = 0o755 if one.runs else 0o644
                archive.addfile(entry, one.source or io.BytesIO(one.content))
                if one.source is not None:
                    one.source.close()
        return packed.tell()


def leaves(name: str, link: str) -> bool:
    """Whether a symbolic link of that name leads out of the work folder."""
    place = posixpath.normpath(posixpath.join(posixpath.dirname(name), link))
    return link.startswith("/") or place == ".." or place.startswith("../")
