"""The cache on the controller host: finished results under a key that says how they were made, checked on each use."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pai_install.components.model import FileArtifact, FileKind, ImageArtifact, ManifestArtifact
from pai_install.components.progress import Progress
from pai_install.components.record import SCHEMA_VERSION, EntryRecord
from pai_install.system.files import write_atomic

# seconds until a waiting process says again that it waits
_REMIND_S = 60.0
_KEY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


def default_cache() -> Path:
    """$XDG_CACHE_HOME/pai-install, or ~/.cache/pai-install."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "pai-install"


def sha256_of(path: Path) -> str:
    """The sha256 of a file's content, 64 lower-case hex digits."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file artefact below a staging folder."""

    name: str
    version: str
    kind: FileKind
    path: Path


@dataclass(frozen=True, slots=True)
class StagedImage:
    """An image below a staging folder."""

    repository: str
    tag: str
    manifest_digest: str
    layout: Path


@dataclass(frozen=True, slots=True)
class StagedManifest:
    """Upstream Kubernetes objects, one file of YAML documents below a staging folder."""

    name: str
    version: str
    path: Path


@dataclass(frozen=True, slots=True)
class Contents:
    """The files that a source put into a staging folder."""

    files: tuple[StagedFile, ...] = ()
    images: tuple[StagedImage, ...] = ()
    manifests: tuple[StagedManifest, ...] = ()


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A finished result in the cache."""

    folder: Path
    files: tuple[FileArtifact, ...]
    images: tuple[ImageArtifact, ...]
    manifests: tuple[ManifestArtifact, ...] = ()

    def path(self, name: str) -> Path:
        """Returns the path of the file artefact called `name`. Raises KeyError."""
        return {artifact.name: artifact.path for artifact in self.files}[name]


class Store:
    """The cache folder: entries/KEY with an entry.json each, and build.*/ for work in progress."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._entries = root / "entries"

    @contextmanager
    def exclusive(self, progress: Progress) -> Iterator[Path]:
        """Locks the cache for one writer, and yields an empty temporary folder, which is deleted even after a crash."""
        self.root.mkdir(parents=True, exist_ok=True)
        lock, card = FileLock(self.root / "lock"), self.root / "lock.json"
        _acquire(lock, lambda: progress(f"waits for another pai-install that fetches components: {_holder(card)}"))
        scratch: Path | None = None
        try:
            write_atomic(card, json.dumps(_myself()))
            for left in (*self.root.glob("build*"), *self._entries.glob(".*")):  # of a run that was killed
                shutil.rmtree(left, ignore_errors=True)
            # A name of its own: programs of a run that was killed may still write into its folder.
            scratch = Path(tempfile.mkdtemp(prefix="build.", dir=self.root))
            scratch.chmod(0o755)  # apt downloads as a user of its own
            yield scratch
        finally:
            if scratch is not None:
                shutil.rmtree(scratch, ignore_errors=True)
            card.unlink(missing_ok=True)
            lock.release()

    def lookup(self, key: str, progress: Progress) -> CacheEntry | None:
        """Returns the entry with verified contents. A damaged entry is deleted, reported, and counts as missing."""
        folder = self.folder(key)
        try:
            record = json.loads((folder / "entry.json").read_text())
        except (OSError, ValueError):
            return None
        if record.get("schema_version") != SCHEMA_VERSION:
            return None
        fresh = _verified(folder, record["contents"])
        if isinstance(fresh, str):
            progress(f"{key}: {fresh} in the cache is damaged; fetching it again")
            shutil.rmtree(folder)
            return None
        if fresh != record["contents"]:
            write_atomic(folder / "entry.json", json.dumps(record | {"contents": fresh}, indent=1))
        return _entry(folder, record)

    def folder(self, key: str) -> Path:
        """Returns the path of the entry of `key`, existing or not. Raises ValueError for a key that is no
        plain name.
        """
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is no key of the cache")
        return self._entries / key

    @contextmanager
    def staging(self, key: str) -> Iterator[Path]:
        """Yields an empty folder for `key` on the cache's file system, which is deleted unless published."""
        self.folder(key).parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{key}.", dir=self._entries))
        folder.chmod(0o755)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def publish(self, key: str, staged: Path, contents: Contents) -> CacheEntry:
        """Makes a staged folder the entry of `key` in one step, replacing an older one."""
        paths = sorted(path for path in staged.rglob("*") if path.is_file() and path.name != "entry.json")
        record = {
            "schema_version": SCHEMA_VERSION,
            "contents": {str(path.relative_to(staged)): _stamp(path, sha256_of(path)) for path in paths},
            "files": [
                {"name": f.name, "version": f.version, "kind": f.kind, "path": str(f.path.relative_to(staged))}
                for f in contents.files
            ],
            "images": [
                {
                    "repository": i.repository,
                    "tag": i.tag,
                    "manifest_digest": i.manifest_digest,
                    "layout": str(i.layout.relative_to(staged)),
                }
                for i in contents.images
            ],
            "manifests": [
                {"name": m.name, "version": m.version, "path": str(m.path.relative_to(staged))}
                for m in contents.manifests
            ],
        }
        write_atomic(staged / "entry.json", json.dumps(record, indent=1))
        target = self.folder(key)
        # The staged folder is complete before it gets its name. An interrupted download never looks like an entry.
        shutil.rmtree(target, ignore_errors=True)
        staged.rename(target)
        return _entry(target, record)


def _myself() -> dict[str, str | int]:
    """Returns data about this process for a waiting process. Arguments never contain secrets."""
    return {
        "pid": os.getpid(),
        "command": " ".join(["pai-install", *sys.argv[1:]]),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _acquire(lock: FileLock, waits: Callable[[], None]) -> None:
    """Takes a lock. waits: called again each minute, since the other process may compile for a quarter of an hour."""
    timeout = 0.0
    while True:
        try:
            lock.acquire(timeout=timeout)
        except Timeout:
            waits()
            timeout = _REMIND_S
        else:
            return


def _holder(card: Path) -> str:
    """Who has the lock, in words."""
    try:
        found = json.loads(card.read_text())
        return f"process {found['pid']} (`{found['command']}`), since {found['since']}"
    except (OSError, ValueError, TypeError, KeyError):
        return "it has just begun"


def read_contents(folder: Path) -> Contents | str:
    """Returns the contents in the record of a foreign entry with all files hashed, or the name of a differing file."""
    try:
        record = EntryRecord.model_validate_json((folder / "entry.json").read_bytes())
    except (OSError, ValueError):
        return "entry.json"
    for name, (digest, *_) in record.contents.items():
        path = folder / name
        if not path.is_file() or sha256_of(path) != digest:
            return name
    return Contents(
        tuple(StagedFile(item.name, item.version, item.kind, folder / item.path) for item in record.files),
        tuple(StagedImage(i.repository, i.tag, i.manifest_digest, folder / i.layout) for i in record.images),
        tuple(StagedManifest(item.name, item.version, folder / item.path) for item in record.manifests),
    )


def _stamp(path: Path, digest: str) -> list[str | int]:
    status = path.stat()
    return [digest, status.st_size, status.st_mtime_ns]


def _verified(folder: Path, contents: dict[str, list[Any]]) -> dict[str, list[Any]] | str:
    """Returns the contents with new stamps, or the name of the first file that differs from its published state."""
    fresh = {}
    for name, (digest, size, mtime) in contents.items():
        path = folder / name
        try:
            status = path.stat()
        except OSError:
            return name
        # Size and time spare the hash of unchanged files: the images alone are many gigabytes.
        if (status.st_size, status.st_mtime_ns) != (size, mtime) and sha256_of(path) != digest:
            return name
        fresh[name] = [digest, status.st_size, status.st_mtime_ns]
    return fresh


def _entry(folder: Path, record: dict[str, Any]) -> CacheEntry:
    def file(item: dict[str, Any]) -> FileArtifact:
        digest, size, _ = record["contents"][item["path"]]
        return FileArtifact(item["name"], item["version"], item["kind"], folder / item["path"], digest, size)

    def image(item: dict[str, Any]) -> ImageArtifact:
        return ImageArtifact(item["repository"], item["tag"], item["manifest_digest"], folder / item["layout"])

    def manifest(item: dict[str, Any]) -> ManifestArtifact:
        digest, *_ = record["contents"][item["path"]]
        return ManifestArtifact(item["name"], item["version"], folder / item["path"], digest)

    manifests = tuple(map(manifest, record.get("manifests", ())))  # entries of earlier versions have none
    return CacheEntry(folder, tuple(map(file, record["files"])), tuple(map(image, record["images"])), manifests)
