"""Kinds of upstream projects, as they are installed. No program is built for them, and none is started."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from pai_install.components.catalogue import load_catalogue, resolve
from pai_install.components.fetch import cached
from pai_install.components.model import Selection
from pai_install.components.modules import Modules
from pai_install.components.source import BuildContext
from pai_install.components.store import Store, default_cache
from tests.integration.control_plane import Json


def definitions_of(component: str) -> Iterator[Json]:
    """Yields the objects of a component's manifests. Downloads the module that has them, once for each version."""
    for path in sorted(_folder(component).iterdir()):
        # the loader in C: these files are large
        yield from (it for it in yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader) if it)


def _folder(component: str) -> Path:
    catalogue = load_catalogue()
    whole, source = resolve(catalogue, needed=[component]), Modules(catalogue)
    (pick,) = (one for one in whole.picks if one.component == component)
    entry = cached(Selection(whole.kubernetes_version, "modules", (pick,)), source)[pick]
    if entry is not None:
        return entry.folder / "manifests"
    folder = default_cache() / "tests" / "manifests" / source.key(pick)
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent) as scratch:
            context = BuildContext(Store(default_cache()), Path(scratch), lambda _line: None)
            source.stage_manifests(pick, Path(scratch) / "staged", context)
            shutil.move(Path(scratch) / "staged", folder)
    return folder
