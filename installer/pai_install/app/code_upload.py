"""An archive that a user sends -> the code of a job, and the code of an existing job. Every entry is checked."""

from __future__ import annotations

import base64
import binascii
import io
import posixpath
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from threading import Lock

from pai_install.cluster.client import ClusterClient
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.code import CodeArchive, StoredCode, part_map, part_names, stored_code
from pai_install.jobs.code_archive import CodeFile, PackedCode, leaves, pack
from pai_install.jobs.state import JobState
from pai_install.kube.model import Ref
from pai_install.kube.objects import child, text

MAX_FILES, MAX_CONTENT = 10_000, 32 * 1024 * 1024
# bytes of an archive: one is in memory several times while it is checked
MAX_UPLOAD = 16 * 1024 * 1024
_MAX_PATH = 1_000
# of a tar: headers and the padding of files
_MAX_TAR = MAX_CONTENT + MAX_FILES * 1536
_ZIP, _GZIP = b"PK\x03\x04", b"\x1f\x8b"
# memory for one archive at a time
_ONE = Lock()


def read_archive(content: bytes) -> PackedCode:
    """Packs the code in a tar, tar.gz, or zip. Raises PaiError for another file, and for unsafe or large content."""
    with _ONE:
        try:
            files = list(_zipped(content) if content.startswith(_ZIP) else _tarred(content))
        except (tarfile.TarError, zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError) as error:
            raise _refused("it is not a tar, tar.gz, or zip that can be read") from error
        except NotImplementedError as error:
            raise _refused("its compression is not supported") from error
        if not files:
            raise _refused("it has no files")
        code = _packed(files)
    if code.size > MAX_UPLOAD:
        raise _refused(f"it has {code.size // 1024} KiB compressed, and {MAX_UPLOAD // 1024} KiB are the most")
    return code


def kept_code(client: ClusterClient, job: JobState) -> CodeArchive | StoredCode | None:
    """The code of a job, None for a job without code. Raises PaiError if the cluster does not keep it.

    No one looks for code on a storage. Its job does, and says so if it is gone.
    """
    if not job.code:
        return None
    if (stored := stored_code(job.code, job.code_place)) is not None:
        return stored
    found: list[bytes] = []
    parts = _parts(job)
    for name, item in zip(parts, client.get(tuple(parts.values())), strict=True):
        try:
            piece = base64.b64decode(text(child(item or {}, "binaryData").get(name)), validate=True)
        except binascii.Error:
            piece = b""
        if not piece:
            break
        found.append(piece)
    code = CodeArchive(b"".join(found))
    if f"sha256:{code.digest}" != job.code:
        raise PaiError(
            f"cannot start {job.name} again: the cluster does not keep its code",
            code="code-not-kept",
            remedy="start it from its file, and add the code",
            exit_code=ExitCode.USAGE,
        )
    return code


def forget_code(client: ClusterClient, job: JobState) -> None:
    """Deletes the code of a deleted job. The collector of garbage would do it later than a new job needs the names."""
    if job.code and not job.code_place:
        client.delete(tuple(_parts(job).values()))


def _parts(job: JobState) -> dict[str, Ref]:
    """The ConfigMap of each part that the code of a job can have."""
    return {name: Ref("configmap", part_map(job.label, name), job.namespace) for name in part_names()}


def _tarred(content: bytes) -> Iterator[CodeFile]:
    if content.startswith(_GZIP):
        # A few KiB of gzip can expand without bound, so zlib gets a limit.
        unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        content = unpacking.decompress(content, _MAX_TAR + 1)
        if len(content) > _MAX_TAR:
            raise _refused(f"its files have more than {MAX_CONTENT // 1024**2} MiB")
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for number, entry in enumerate(archive):
            _require_few(number)
            if entry.isdir():
                continue
            name = _name(entry.name)
            if entry.issym():
                yield CodeFile(name, link=_target(name, entry.linkname))
            elif entry.isreg() and not entry.issparse():
                read = archive.extractfile(entry)
                yield CodeFile(name, read.read() if read is not None else b"", runs=bool(entry.mode & 0o100))
            else:
                raise _refused(f"{name[:80]} is not a file")


def _zipped(content: bytes) -> Iterator[CodeFile]:
    size = 0
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for number, entry in enumerate(archive.infolist()):
            _require_few(number)
            if entry.is_dir():
                continue
            # The upper bits are the type of Unix: 8 is a regular file. Archives of Windows have 0.
            kind = entry.external_attr >> 28
            if kind not in {0, 8}:
                raise _refused(f"{entry.filename[:80]} is not a file")
            # Python unpacks bzip2 and LZMA without a limit: 1 KiB may fill the memory.
            if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                raise NotImplementedError
            with archive.open(entry) as file:
                found = file.read(MAX_CONTENT - size + 1)
            size += len(found)
            if size > MAX_CONTENT:
                raise _refused(f"its files have more than {MAX_CONTENT // 1024**2} MiB")
            yield CodeFile(_name(entry.filename), found, runs=bool(entry.external_attr >> 16 & 0o100))


def _require_few(number: int) -> None:
    if number >= MAX_FILES:
        raise _refused(f"it has more than {MAX_FILES} files")


def _name(word: str) -> str:
    """A name below the work folder. Raises PaiError for any other."""
    name = posixpath.normpath(word)
    if word.startswith("/") or name in {"..", "."} or name.startswith("../") or len(name) > _MAX_PATH:
        raise _refused(f"{word[:80]!r} is not a name below the folder")
    if not name.isprintable() or "\\" in name:
        raise _refused(f"{word[:80]!r} has characters that no name of a file may have")
    return name


def _target(name: str, link: str) -> str:
    if len(link) > _MAX_PATH or leaves(name, link) or not link.isprintable():
        raise _refused(f"the link {name[:80]!r} leaves the folder")
    return link


def _packed(files: list[CodeFile]) -> PackedCode:
    """The archive of files, in one order. Of two files with one name, the last counts."""
    by_name = {one.name: one for one in files}
    if both := {folder for name in by_name for folder in _folders(name)} & by_name.keys():
        raise _refused(f"{min(both)[:80]!r} is a file and a folder")
    links = {name for name, one in by_name.items() if one.link}
    for name in links:
        if any(step in links for step in _steps(name, by_name[name].link)):
            raise _refused(f"the link {name[:80]!r} leads through another link")
    return pack(io.BytesIO(), (by_name[name] for name in sorted(by_name)))


def _steps(name: str, link: str) -> Iterator[str]:
    """The folders on the way to the target of a link. After a link, `..` would not mean the folder above its name."""
    place = posixpath.dirname(name)
    for word in link.split("/")[:-1]:
        place = posixpath.normpath(posixpath.join(place, word))
        yield place


def _folders(name: str) -> Iterator[str]:
    """The folders above a file."""
    while name := posixpath.dirname(name):
        yield name


def _refused(cause: str) -> PaiError:
    return PaiError(
        f"cannot read the archive of the code: {cause}",
        code="code-not-packed",
        remedy="make a tar.gz or zip of the files that the job needs, and put data on a storage",
        exit_code=ExitCode.USAGE,
    )
