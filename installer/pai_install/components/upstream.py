"""The sources that download published files: from the projects' own servers or from a mirror."""

from __future__ import annotations

import shutil
import tarfile
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from pai_install.components import manifests
from pai_install.components.access import UPSTREAM, Mirror, in_a_hurry
from pai_install.components.catalogue import Catalogue, Component, FileSpec, ManifestSpec, Release
from pai_install.components.download import download, first_byte
from pai_install.components.image import LayerEntry, place, write_archive
from pai_install.components.model import Architecture, PinnedComponent, SourceName
from pai_install.components.registry_client import probe, pull, reference
from pai_install.components.source import BuildContext, box_architecture, recipe_key
from pai_install.components.store import Contents, StagedFile, StagedImage
from pai_install.components.userland import unpack
from pai_install.errors import PaiError

RECIPE = 1
DISK_MB = 1500  # the largest component with its archive and what is taken out of it


class Releases:
    """Downloads files with pinned sums, and images by their pinned digests or else their tags."""

    def __init__(
        self, catalogue: Catalogue, mirror: Mirror = UPSTREAM, architecture: Architecture | None = None
    ) -> None:
        self._catalogue = catalogue
        self._mirror = mirror
        self._architecture = architecture or box_architecture()

    @property
    def name(self) -> SourceName:
        """The word for it in the site's configuration."""
        return "mirror" if self._mirror.url else "upstream"

    def key(self, pick: PinnedComponent) -> str:
        """Returns a key over the downloaded content, not its server: results of a mirror are the same."""
        component, release = self._parts(pick)
        recipe = {
            "recipe": RECIPE,
            "on": self._architecture,
            "sums": {name: sums.get(self._architecture) for name, sums in release.sha256.items()},
            "files": {name: spec.model_dump() for name, spec in component.files.items()},
            "images": {
                name: (spec.from_, spec.tag, *filter(None, [release.digest(name)]))
                for name, spec in component.images.items()
            },
            **manifests.recipe(component, pick.version),
        }
        return recipe_key(f"upstream-{pick.component}", pick.version, recipe)

    def pinned(self, pick: PinnedComponent) -> Mapping[str, str]:
        """Files that are not taken out of an archive or package."""
        component, release = self._parts(pick)
        # The lock's sum is that of the archive or package. It says nothing about a file that is taken out of it.
        whole = [name for name, spec in component.files.items() if not (spec.packages or spec.member)]
        return {name: sum_ for name in whole if (sum_ := release.sha256[name].get(self._architecture))}

    def debian_packages(self, pick: PinnedComponent) -> tuple[str, ...]:
        """dpkg, where upstream publishes Debian packages only."""
        component, _ = self._parts(pick)
        return ("dpkg",) if any(spec.packages for spec in component.files.values()) else ()

    def disk_mb(self, pick: PinnedComponent) -> int:
        """The same for all: downloads are small beside builds."""
        del pick
        return DISK_MB

    def prefetch(self, pick: PinnedComponent, context: BuildContext) -> AbstractContextManager[None]:
        """Does nothing: without a compiler at work, a second download would only share the network."""
        del pick, context
        return nullcontext()

    def produce(self, pick: PinnedComponent, staged: Path, context: BuildContext) -> Contents:
        """Downloads and verifies. Downloaded files stay for the next attempt after a failure."""
        component, release = self._parts(pick)
        downloads = context.store.root / "downloads"
        (staged / "files").mkdir()
        files = [self._file(name, spec, pick, staged / "files", context) for name, spec in component.files.items()]
        images = []
        for name, spec in component.images.items():
            tag = spec.tag.format(version=pick.version)
            wanted = reference(spec.from_, tag, self._mirror.url, release.digest(name))
            layout = staged / "images" / name
            digest = pull(wanted, self._architecture, layout, downloads, context.progress, self._mirror)
            images.append(StagedImage(name, tag, digest, layout))
        objects = manifests.assemble(
            component, pick.version, staged / "manifests", lambda spec, name: self._manifest(spec, name, pick, context)
        )
        shutil.rmtree(downloads, ignore_errors=True)
        return Contents(tuple(files), tuple(images), objects)

    def probes(self, picks: Iterable[PinnedComponent]) -> Mapping[str, Callable[[], None]]:
        """Returns a file or image of each server -> function that requests its first byte. It raises PaiError."""
        found: dict[tuple[str, object], tuple[str, Callable[[], None]]] = {}
        for pick in picks:
            for url, request in self._askings(pick):
                # One small request tells whether a server answers. One per file would take minutes and test the same
                # server.
                found.setdefault((urllib.parse.urlsplit(url).netloc, request.func), (url, request))
        return dict(found.values())

    def _askings(self, pick: PinnedComponent) -> Iterator[tuple[str, partial[None]]]:
        component, release = self._parts(pick)
        access = in_a_hurry(self._mirror.access())
        urls = [
            self._fill(url, pick.version) for name, it in component.files.items() for url in it.downloads(name).values()
        ]
        urls += [it.url.format(version=pick.version, file=it.files[0]) for it in component.manifests.values()]
        for url in map(self._mirror.of, urls):
            yield url, partial(first_byte, url, access)
        for name, spec in component.images.items():
            place_ = reference(
                spec.from_, spec.tag.format(version=pick.version), self._mirror.url, release.digest(name)
            )
            yield (
                f"{place_.registry}/{place_.repository}:{place_.tag}",
                partial(probe, place_, self._architecture, self._mirror),
            )

    def _manifest(
        self, spec: ManifestSpec, name: str, pick: PinnedComponent, context: BuildContext
    ) -> Mapping[str, bytes]:
        sums = self._parts(pick)[1].manifests[name]
        return {file: self._manifest_file(spec, file, sums[file], pick, context) for file in spec.files}

    def _manifest_file(
        self, spec: ManifestSpec, file: str, sha256: str, pick: PinnedComponent, context: BuildContext
    ) -> bytes:
        url = self._mirror.of(spec.url.format(version=pick.version, file=file))
        context.progress(f"{pick.component} {pick.version}: downloading {url}")
        return self._bring(url, sha256, context).read_bytes()

    def _parts(self, pick: PinnedComponent) -> tuple[Component, Release]:
        component = self._catalogue.components[pick.component]
        return component, component.versions[pick.version]

    def _file(
        self, name: str, spec: FileSpec, pick: PinnedComponent, folder: Path, context: BuildContext
    ) -> StagedFile:
        got = {key: self._download(key, template, pick, context) for key, template in spec.downloads(name).items()}
        target = folder / (name if spec.kind == "binary" else f"{name}.tar.gz")
        if spec.packages:
            repack(got, spec, target, context.scratch / name)
        elif spec.member:
            take_member(got[name], self._fill(spec.member, pick.version), target)
        else:
            place(got[name], target)
        target.chmod(0o755 if spec.kind == "binary" else 0o644)
        return StagedFile(name, pick.version, spec.kind, target)

    def _download(self, key: str, template: str, pick: PinnedComponent, context: BuildContext) -> Path:
        _, release = self._parts(pick)
        sha256 = release.sha256[key].get(self._architecture)
        if sha256 is None:
            raise PaiError(
                f"cannot fetch {pick.component} {pick.version}: there is no checksum for {self._architecture}",
                code="checksum-not-pinned",
            )
        url = self._mirror.of(self._fill(template, pick.version))
        context.progress(f"{key} {pick.version}: downloading {url}")
        return self._bring(url, sha256, context)

    def _bring(self, url: str, sha256: str, context: BuildContext) -> Path:
        target = context.store.root / "downloads" / sha256
        return download(url, target, sha256, context.progress, access=self._mirror.access())

    def _fill(self, template: str, version: str) -> str:
        return template.format(version=version, arch=self._architecture)


def take_member(archive: Path, member: str, target: Path) -> None:
    """Extracts one file from a tar archive. Raises PaiError if it is missing."""
    with tarfile.open(archive) as content:
        # Some archives name their members "./name", others "name". Both mean the same file.
        names = {name.removeprefix("./"): name for name in content.getnames()}
        handle = content.extractfile(names[member]) if member in names else None
        if handle is None:
            raise PaiError(f"cannot find {member} in {archive.name}", code="archive-member-missing")
        with handle, target.open("wb") as output:
            shutil.copyfileobj(handle, output)


def repack(packages: Mapping[str, Path], spec: FileSpec, target: Path, scratch: Path) -> None:
    """Puts the programs of Debian packages into the tar.gz form the machines unpack."""
    unpack(list(packages.values()), scratch)
    wanted = [program for program in spec.programs if program not in spec.not_upstream]
    nodes = [LayerEntry(f"{spec.folder}/{program}", 0o755, scratch / "usr/bin" / program) for program in wanted]
    for node in nodes:
        if not (isinstance(node.content, Path) and node.content.is_file()):
            raise PaiError(
                f"cannot find {node.path} in the packages {', '.join(packages)}", code="package-path-missing"
            )
    write_archive(nodes, target, folders=False)
