"""A component bundle: one offline file with everything a cluster needs, for dev boxes without a network."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

from pai_install.components.fetch import fetch
from pai_install.components.model import PinnedComponent, Selection, SourceName
from pai_install.components.progress import Progress, silent
from pai_install.components.source import BuildContext, Source
from pai_install.components.store import Contents, Store, default_cache, read_contents
from pai_install.errors import ExitCode, PaiError

SCHEMA_VERSION = 1
INDEX = "bundle.json"


def write_bundle(
    selection: Selection, source: Source, target: Path, cache: Path | None = None, progress: Progress = silent
) -> None:
    """Fetches what is missing and writes the offline file; an older one is replaced when the new one is whole."""
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
        self._index = _read_index(path)
        self._keys: dict[PinnedComponent, str] = {
            PinnedComponent(item["component"], item["version"]): item["key"] for item in self._index["picks"]
        }

    @property
    def name(self) -> SourceName:
        """The word for it in the site's configuration."""
        return "bundle"

    def selection(self, kubernetes_version: str) -> Selection:
        """Everything in the bundle; raises PaiError (site invalid) when its Kubernetes version is another."""
        held = str(self._index["kubernetes_version"])
        wanted = kubernetes_version.removeprefix("v")
        if wanted and held != wanted and not held.startswith(f"{wanted}."):
            raise PaiError(
                f"{self._path} holds Kubernetes {held}, the site wants {wanted}",
                remedy="set kubernetes_version to what the bundle holds, or use a bundle made for that version",
                exit_code=ExitCode.SITE_INVALID,
            )
        return Selection(held, "bundle", tuple(self._keys))

    def key(self, pick: PinnedComponent) -> str:
        """The key it had where the bundle was made: the cache does not care where a result came from."""
        return self._keys[pick]

    def debian_packages(self, pick: PinnedComponent) -> tuple[str, ...]:
        """None."""
        del pick
        return ()

    def disk_mb(self, pick: PinnedComponent) -> int:
        """At most what the whole file takes."""
        del pick
        return (self._path.stat().st_size >> 20) + 1

    def produce(self, pick: PinnedComponent, staged: Path, context: BuildContext) -> Contents:
        """Unpacks one entry and compares every file with its recorded sum; raises PaiError when one differs."""
        context.progress(f"{pick.component} {pick.version}: unpacking from {self._path.name}")
        prefix = f"{self.key(pick)}/"
        with tarfile.open(self._path) as archive:
            for member in archive:
                if member.name.startswith(prefix) and member.isfile():
                    inner = member.replace(name=member.name.removeprefix(prefix))
                    archive.extract(inner, staged, filter="data")
        contents = read_contents(staged)
        if isinstance(contents, str):
            raise PaiError(
                f"{self._path} is damaged: {contents} of {pick.component} does not match the digest in its index",
                remedy="copy the bundle again, or rebuild it",
            )
        return contents


def _read_index(path: Path) -> dict[str, Any]:
    try:
        with tarfile.open(path) as archive:
            first = archive.next()
            handle = archive.extractfile(first) if first and first.name == INDEX else None
            index: dict[str, Any] = json.loads(handle.read()) if handle else {}
    except (OSError, tarfile.TarError, ValueError) as error:
        raise _not_a_bundle(path, str(error)) from error
    if index.get("schema_version") != SCHEMA_VERSION:
        raise _not_a_bundle(path, "it has no index of this version")
    return index


def _not_a_bundle(path: Path, why: str) -> PaiError:
    return PaiError(
        f"{path} cannot be read as a component bundle: {why}",
        remedy="make one with: pai-install components bundle FILE",
        exit_code=ExitCode.SITE_INVALID,
    )
