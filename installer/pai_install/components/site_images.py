"""A source before another one: images that the site gives as files stand for components of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from pai_install.components.catalogue import Catalogue, ImageSpec
from pai_install.components.image_file import check_image_file, unpack_image_file
from pai_install.components.model import Architecture, PinnedComponent, SourceName
from pai_install.components.source import BuildContext, Source, box_architecture
from pai_install.components.store import Contents, StagedImage, sha256_of
from pai_install.errors import ExitCode, PaiError


class SiteImages:
    """Yields the images of files, and everything else from the other source."""

    def __init__(
        self, catalogue: Catalogue, files: Mapping[str, Path], other: Source, architecture: Architecture | None = None
    ) -> None:
        """files: component -> file. Raises PaiError (site invalid) where one is not the image of a component."""
        self._catalogue, self._files, self._other = catalogue, files, other
        self._architecture = architecture or box_architecture()
        for component, path in files.items():
            self._image(component)
            check_image_file(path, self._architecture)
        self._sums = {component: sha256_of(path)[:32] for component, path in files.items()}

    @property
    def name(self) -> SourceName:
        """That of the other source."""
        return self._other.name

    def key(self, pick: PinnedComponent) -> str:
        """Over the file's content."""
        if pick.component not in self._files:
            return self._other.key(pick)
        return f"given-{pick.component}-{pick.version}-{self._sums[pick.component]}"

    def pinned(self, pick: PinnedComponent) -> Mapping[str, str]:
        """Returns {} for a file, because the site's admin determines its content."""
        return {} if pick.component in self._files else self._other.pinned(pick)

    def debian_packages(self, pick: PinnedComponent) -> tuple[str, ...]:
        """None for a file."""
        return () if pick.component in self._files else self._other.debian_packages(pick)

    def disk_mb(self, pick: PinnedComponent) -> int:
        """At most twice the file."""
        path = self._files.get(pick.component)
        return self._other.disk_mb(pick) if path is None else (path.stat().st_size >> 19) + 1

    def prefetch(self, pick: PinnedComponent, context: BuildContext) -> AbstractContextManager[None]:
        """As the other source does it."""
        return self._other.prefetch(pick, context) if pick.component not in self._files else nullcontext()

    def produce(self, pick: PinnedComponent, staged: Path, context: BuildContext) -> Contents:
        """Unpacks a file. Raises PaiError if it is damaged."""
        path = self._files.get(pick.component)
        if path is None:
            return self._other.produce(pick, staged, context)
        name, spec = self._image(pick.component)
        tag = spec.tag.format(version=pick.version)
        context.progress(f"{pick.component} {pick.version}: unpacking {path}")
        layout = staged / "images" / name
        digest = unpack_image_file(path, self._architecture, layout, tag)
        return Contents(images=(StagedImage(name, tag, digest, layout),))

    def _image(self, component: str) -> tuple[str, ImageSpec]:
        """Name and description of a component's one image. Raises PaiError (site invalid)."""
        found = self._catalogue.components.get(component)
        if found is None or found.files or found.manifests or len(found.images) != 1:
            known = [name for name, it in self._catalogue.components.items() if not it.files and len(it.images) == 1]
            raise PaiError(
                f"cannot use component_images: {component} does not consist of one image",
                code="component-image-not-single",
                remedy=f"choose from {', '.join(sorted(known))}",
                exit_code=ExitCode.SITE_INVALID,
            )
        return next(iter(found.images.items()))
