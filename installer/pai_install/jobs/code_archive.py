"""Files -> the archive of a job's code. Pure."""

from __future__ import annotations

import gzip
import io
import posixpath
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, field

from pai_install.jobs.code import CodeArchive


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file, by its name below the work folder. link: the target of a symbolic link, "" for a file."""

    name: str
    content: bytes = field(default=b"", repr=False)
    link: str = ""
    runs: bool = False


def archive_of(files: Iterable[CodeFile]) -> CodeArchive:
    """The archive of files, in their order. The same files always give the same archive."""
    output = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=output, mode="wb", mtime=0, filename="") as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for one in files:
            entry = tarfile.TarInfo(one.name)
            if one.link:
                entry.type, entry.linkname = tarfile.SYMTYPE, one.link
            entry.size, entry.mode = len(one.content), 0o755 if one.runs else 0o644
            archive.addfile(entry, io.BytesIO(one.content))
    return CodeArchive(output.getvalue())


def leaves(name: str, link: str) -> bool:
    """Whether a symbolic link of that name leads out of the work folder."""
    place = posixpath.normpath(posixpath.join(posixpath.dirname(name), link))
    return link.startswith("/") or place == ".." or place.startswith("../")
