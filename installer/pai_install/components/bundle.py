"""A component bundle: one offline file with everything a cluster needs, for controller hosts without a network."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from pydantic import ValidationError

from pai_install.components.fetch import fetch
from pai_install.components.model import PinnedComponent, Selection, SourceName
from pai_install.components.progress import Progress, silent
from pai_install.components.record import SCHEMA_VERSION, Index
from pai_install.components.source import BuildContext, Source
from pai_install.components.store import Contents, Store, default_cache, read_contents
from pai_install.errors import ExitCode, PaiError

INDEX = "bundle.json"
_RECORD = "entry.json"
_LONGEST_RECORD = 16 << 20
# of a member with a strange name, time, or depth, too
_UNREADABLE = (OSError, tarfile.TarError, ValueError, OverflowError, RecursionError)


def write_bundle(
    selection: Selection, source: Source, target: Path, cache: Path | None = None, progress: Progress = silent
) -> None:
    """Downloads missing content and writes the offline file. A complete new file replaces an old one."""
    fetch(selection, source, cache, progress)
    store = Store(cache or default_cache())
    picks = [
        {"component": pick.component, "version": pick.version, "key": source.key(pick)} for pick in selection.picks
    ]
    index = {
        "schema_version": SCHEMA_VERSION,
        "kubernetes_version": selection.kubernetes_version,
        "picks": picks,
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    # entries share layers as hard links; each is to be whole by itself
    with tarfile.open(part, "w", dereference=True) as archive:
        _add(archive, INDEX, json.dumps(index, indent=1).encode())
        for pick in picks:
            progress(f"{pick['component']} {pick['version']}: adding to {target}")
            archive.add(store.folder(pick["key"]), arcname=pick["key"])
    part.replace(target)


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


class Bundle:
    """The source that reads such a file."""

    def __init__(self, path: Path) -> None:
        """Raises PaiError (site invalid) when the file is not a bundle."""
        self._path = path
        self._index, sums = _read_index(path)
        self._prefixes = {PinnedComponent(item.component, item.version): f"{item.key}/" for item in self._index.picks}
        self._sums = {pick: sums.get(prefix, "none") for pick, prefix in self._prefixes.items()}

    @property
    def name(self) -> SourceName:
        """The word for it in the site's configuration."""
        return "bundle"

    def selection(self, kubernetes_version: str) -> Selection:
        """Returns the whole bundle. Raises PaiError (site invalid) for another Kubernetes version."""
        held = self._index.kubernetes_version
        wanted = kubernetes_version.removeprefix("v")
        if wanted and held != wanted and not held.startswith(f"{wanted}."):
            raise PaiError(
                f"cannot use {self._path}: it contains Kubernetes {held}, and the site has {wanted}",
                code="bundle-kubernetes-version",
                remedy=f"set kubernetes_version to {held}, or use a bundle with {wanted}",
                exit_code=ExitCode.SITE_INVALID,
            )
        return Selection(held, "bundle", tuple(self._prefixes))

    def key(self, pick: PinnedComponent) -> str:
        """Returns a key over the entry's record, so that it never matches another source or bundle."""
        return f"bundle-{pick.component}-{pick.version.replace('+', '-')}-{self._sums[pick]}"

    def pinned(self, pick: PinnedComponent) -> Mapping[str, str]:
        """Returns {}, because the creator of the bundle determines its content."""
        del pick
        return {}

    def debian_packages(self, pick: PinnedComponent) -> tuple[str, ...]:
        """None."""
        del pick
        return ()

    def disk_mb(self, pick: PinnedComponent) -> int:
        """Returns the disk space of the whole file as the upper limit."""
        del pick
        return (self._path.stat().st_size >> 20) + 1

    def prefetch(self, pick: PinnedComponent, context: BuildContext) -> AbstractContextManager[None]:
        """Does nothing: without a compiler at work, a second download would only share the network."""
        del pick, context
        return nullcontext()

    def produce(self, pick: PinnedComponent, staged: Path, context: BuildContext) -> Contents:
        """Unpacks one entry and verifies every file against its recorded sum. Raises PaiError on a difference."""
        context.progress(f"{pick.component} {pick.version}: unpacking from {self._path.name}")
        try:
            self._unpack(self._prefixes[pick], staged)
            # of members that unpack to the same path the last one counts
            contents = read_contents(staged) if self._is_indexed(pick, staged) else _RECORD
        except _UNREADABLE as error:
            contents = str(error)
        if isinstance(contents, str):
            raise PaiError(
                f"cannot use {self._path}: the digest of {contents} of {pick.component} differs from the index",
                code="bundle-digest-mismatch",
                remedy="copy the bundle again, or create it again",
            )
        return contents

    def _unpack(self, prefix: str, staged: Path) -> None:
        with tarfile.open(self._path, "r:") as archive:
            for member in archive:
                if member.name.startswith(prefix) and _whole(member):
                    inner = member.replace(name=member.name.removeprefix(prefix))
                    # The filter refuses links and paths that lead out of the folder.
                    archive.extract(inner, staged, filter="data")

    def _is_indexed(self, pick: PinnedComponent, staged: Path) -> bool:
        """Returns whether the unpacked record is the record of the key."""
        record = staged / _RECORD
        return record.is_file() and _digits(record.read_bytes()) == self._sums[pick]


def _read_index(path: Path) -> tuple[Index, dict[str, str]]:
    """The index, and folder in the bundle -> digits of the sha256 of its entry's record."""
    if path.exists() and not path.is_file():
        raise _not_a_bundle(path, "it is not a regular file")
    try:
        with tarfile.open(path, "r:") as archive:
            first = archive.next()
            index = Index.model_validate_json(_read(archive, first)) if first and first.name == INDEX else None
            records = [member for member in archive if member.name.endswith(f"/{_RECORD}")]
            sums = {member.name.removesuffix(_RECORD): _digits(_read(archive, member)) for member in records}
    except ValidationError as error:
        raise _not_a_bundle(path, "it has no index of this version") from error
    except _UNREADABLE as error:
        raise _not_a_bundle(path, str(error)) from error
    if index is None:
        raise _not_a_bundle(path, "it has no index of this version")
    return index, sums


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    handle = archive.extractfile(member) if _whole(member) and member.size <= _LONGEST_RECORD else None
    if handle is None:
        raise ValueError(f"its {member.name[:200]!r} is not a file of ordinary size")
    return handle.read()


def _whole(member: tarfile.TarInfo) -> bool:
    """Whether it is a file that takes as much room as its bytes here: no link, and no sparse file of any size."""
    return member.isreg() and not member.issparse()


def _digits(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _not_a_bundle(path: Path, why: str) -> PaiError:
    return PaiError(
        f"cannot read the bundle {path}: {why}",
        code="bundle-unreadable",
        remedy="create it again: pai-install components bundle FILE",
        exit_code=ExitCode.SITE_INVALID,
    )
