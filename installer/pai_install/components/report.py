"""Results of `components`, with their texts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

from pai_install.components.catalogue import Catalogue, Component, Family
from pai_install.components.model import FileArtifact, ImageArtifact, ManifestArtifact
from pai_install.json_schema import Count, Report, ReportObject


class ComponentEntry(ReportObject):
    """A third-party program, or a family that is released together."""

    component: str
    summary: str
    licence: str
    home: str
    files: tuple[str, ...]
    images: tuple[str, ...]
    manifests: tuple[str, ...]
    wheels: Mapping[str, str]
    lacks: Mapping[str, str]
    digests: Mapping[str, Mapping[str, str]]
    versions: Mapping[str, tuple[Family, ...]]


class CatalogueReport(Report, title="pai-install components list"):
    """Third-party programs with their licences and pinned versions."""

    components: tuple[ComponentEntry, ...]


class ComponentsReport(Report, title="pai-install components fetch"):
    """Verified components in the cache of the controller host."""

    kubernetes_version: str
    files: tuple[FileArtifact, ...]
    images: tuple[ImageArtifact, ...]
    manifests: tuple[ManifestArtifact, ...]


class CachedComponent(ReportObject):
    """A component of a site."""

    component: str
    version: str
    cached: bool


class CacheReport(Report, title="pai-install components status"):
    """The components of a site in the cache of the controller host."""

    ok: bool
    cache: Path
    source: str
    kubernetes_version: str
    components: tuple[CachedComponent, ...]
    missing_packages: tuple[str, ...]


class BundleReport(Report, title="pai-install components bundle"):
    """An offline file."""

    path: Path
    sha256: str
    size: Count


def catalogue_report(catalogue: Catalogue) -> CatalogueReport:
    """Returns the catalogue as a result."""
    return CatalogueReport(components=tuple(_entry(*item) for item in catalogue.components.items()))


def _entry(name: str, component: Component) -> ComponentEntry:
    return ComponentEntry(
        component=name,
        summary=component.summary,
        licence=component.licence,
        home=component.home,
        files=tuple(component.files),
        images=component.image_names,
        manifests=tuple(component.manifests),
        wheels=component.wheels,
        lacks=component.lacks,
        digests={version: release.digests for version, release in component.versions.items()},
        versions={version: _families(component, version) for version in component.versions},
    )


def _families(component: Component, version: str) -> tuple[Family, ...]:
    return tuple(family for family in get_args(Family) if component.has(version, family))


def catalogue_text(catalogue: Catalogue) -> str:
    """Returns each program with its versions, and where they come from."""
    return _text(_catalogue_lines(catalogue))


def _catalogue_lines(catalogue: Catalogue) -> Iterator[str]:
    for name, component in catalogue.components.items():
        yield f"{name} - {component.summary} ({component.licence}, {component.home})"
        for version in component.versions:
            yield f"  {version:<10}from {', '.join(_families(component, version))}{_pins(component, version)}"
        if component.wheels:
            yield f"  wheels: {', '.join(f'{wheel} ({licence})' for wheel, licence in component.wheels.items())}"


def _pins(component: Component, version: str) -> str:
    """How the images of upstream are known: by digest, or by their tags alone."""
    release = component.versions[version]
    if not component.images or not component.has(version, "upstream"):
        return ""
    by_tag = [name for name in component.images if not release.digest(name)]
    return f"; by tag, not by digest: {', '.join(by_tag)}" if by_tag else "; images by digest"


def components_text(report: ComponentsReport) -> str:
    """Returns a line for each file and image."""
    return _text(_artifact_lines(report.files, report.images))


def _artifact_lines(files: Sequence[FileArtifact], images: Sequence[ImageArtifact]) -> Iterator[str]:
    for file in files:
        yield f"file   {file.name:<26}{file.version:<10}{file.size >> 20:>5} MB  sha256:{file.sha256}"
    for image in images:
        yield f"image  {image.repository:<26}{image.tag:<10}          {image.manifest_digest}"


def cache_text(report: CacheReport) -> str:
    """Returns a line for each component."""
    rows = report.components
    return _text(f"{row.component:<26}{row.version:<10}{'ready' if row.cached else 'missing'}" for row in rows)


def bundle_text(report: BundleReport) -> str:
    """Returns one line."""
    return f"{report.path}  {report.size >> 20} MB  sha256:{report.sha256}\n"


def _text(lines: Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
