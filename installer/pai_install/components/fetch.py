"""Downloads a selection into the cache, verified. Existing content is skipped."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from pai_install.components.access import UPSTREAM, Mirror
from pai_install.components.assembled import Assembled
from pai_install.components.catalogue import Catalogue
from pai_install.components.model import ComponentSet, PinnedComponent, Selection, SourceName
from pai_install.components.modules import Modules
from pai_install.components.progress import Progress, silent
from pai_install.components.requirements import check_disk, missing
from pai_install.components.source import BuildContext, Source
from pai_install.components.store import CacheEntry, Store, default_cache
from pai_install.components.upstream import Releases
from pai_install.errors import ExitCode, PaiError


def open_source(catalogue: Catalogue, name: SourceName, mirror: Mirror = UPSTREAM) -> Source:
    """The source of that name (a bundle is opened by its file: see choose.py).

    Raises PaiError (site invalid) when a mirror has no address.
    """
    if name == "modules":
        return Assembled(catalogue, Modules(catalogue))
    if name == "bundle":
        raise ValueError("a bundle is opened by its file")
    if name == "mirror" and not mirror.url:
        raise PaiError(
            "cannot fetch components: component_source is mirror, and component_mirror_url is missing",
            code="mirror-url-missing",
            remedy="set component_mirror_url in config.yaml",
            exit_code=ExitCode.SITE_INVALID,
        )
    return Assembled(catalogue, Releases(catalogue, mirror if name == "mirror" else UPSTREAM))


def cached(selection: Selection, source: Source, cache: Path | None = None) -> dict[PinnedComponent, CacheEntry | None]:
    """Returns the cached components of the selection, verified. Downloads nothing."""
    store = Store(cache or default_cache())
    return {pick: _lookup(store, source, pick, silent) for pick in selection.picks}


def requirements(selection: Selection, source: Source, cache: Path | None = None) -> tuple[str, ...]:
    """Returns the sorted Debian packages that the controller host lacks to fetch uncached components."""
    wanted = [pick for pick, entry in cached(selection, source, cache).items() if entry is None]
    return missing(package for pick in wanted for package in source.debian_packages(pick))


def fetch(selection: Selection, source: Source, cache: Path | None = None, progress: Progress = silent) -> ComponentSet:
    """Returns the whole selection, verified. cache: our folder, by default the user's.

    Idempotent. An interrupted run keeps its completed entries. Raises PaiError if the host lacks packages or disk
    space, or if a component is unavailable or does not match its pin (exit code: preflight failed).
    """
    try:
        return _fetch(selection, source, Store(cache or default_cache()), progress)
    except PaiError as error:
        if (
            error.exit_code is ExitCode.STEP_FAILED
        ):  # no machine was touched: it is the controller host that lacks something
            error.exit_code = ExitCode.PREFLIGHT_FAILED
        raise


def _lookup(store: Store, source: Source, pick: PinnedComponent, progress: Progress) -> CacheEntry | None:
    """The entry, when its files also have the sums that the catalogue pins: its record alone is not believed."""
    entry = store.lookup(source.key(pick), progress)
    wanted = source.pinned(pick)
    if entry is None or all(wanted.get(file.name, file.sha256) == file.sha256 for file in entry.files):
        return entry
    progress(f"{pick.component} {pick.version}: the cache holds another file than the one that is pinned")
    return None


def _fetch(selection: Selection, source: Source, store: Store, progress: Progress) -> ComponentSet:
    entries = {pick: _lookup(store, source, pick, progress) for pick in selection.picks}
    wanted = [pick for pick, entry in entries.items() if entry is None]
    if wanted:
        _check_box(wanted, source, store)
        with store.exclusive(progress) as scratch:
            for number, pick in enumerate(wanted, 1):
                label = f"[{number}/{len(wanted)}] "
                context = BuildContext(store, scratch, lambda line, label=label: progress(label + line))  # type: ignore[misc]
                with source.prefetch(wanted[number], context) if number < len(wanted) else nullcontext():
                    entries[pick] = _produce(pick, source, context)
    found = [entry for entry in entries.values() if entry]
    return ComponentSet(
        files=tuple(file for entry in found for file in entry.files),
        images=tuple(image for entry in found for image in entry.images),
        kubernetes_version=selection.kubernetes_version,
        manifests=tuple(manifest for entry in found for manifest in entry.manifests),
    )


def _check_box(wanted: Sequence[PinnedComponent], source: Source, store: Store) -> None:
    lacking = missing(package for pick in wanted for package in source.debian_packages(pick))
    if lacking:
        raise PaiError(
            f"cannot build components from the source {source.name}: this host lacks {', '.join(lacking)}",
            code="build-tools-missing",
            remedy=f"run apt-get install {' '.join(lacking)}",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )
    # Components are made one after the other, so the largest one decides.
    check_disk(store.root, max(source.disk_mb(pick) for pick in wanted))


def _produce(pick: PinnedComponent, source: Source, context: BuildContext) -> CacheEntry:
    key = source.key(pick)
    known = _lookup(context.store, source, pick, context.progress)  # another process may have made it meanwhile
    if known:
        return known
    started = time.monotonic()
    with context.store.staging(key) as staged:
        contents = source.produce(pick, staged, context)
        entry = context.store.publish(key, staged, contents)
    took = time.monotonic() - started
    size = sum(path.stat().st_size for path in entry.folder.rglob("*") if path.is_file()) >> 20
    context.progress(f"{pick.component} {pick.version}: ready, {took:.0f} s, {size} MB")
    return entry
