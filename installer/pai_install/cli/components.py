"""`pai-install components list|fetch|status|bundle`: pinned third-party programs, and the cache of this host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from pai_install.app.components import (
    SelectComponents,
    WriteBundle,
    cache_status,
    catalogue_of,
    fetch_components,
    write_component_bundle,
)
from pai_install.app.context import App
from pai_install.cli.command import reading
from pai_install.cli.options import group_site_option, yes_option
from pai_install.cli.terminal import Terminal
from pai_install.components.catalogue import Catalogue, Component
from pai_install.components.model import ComponentSet, FileArtifact, ImageArtifact
from pai_install.components.store import default_cache, sha256_of
from pai_install.errors import ExitCode

SCHEMA_VERSION = 1


@click.group
@group_site_option
def command() -> None:
    """List, fetch, and verify third-party programs."""


@command.command("list")
@reading()
@click.option("--needed", is_flag=True, help="Only components of the site: by its machines, settings, and add-ons.")
def list_(*, app: App, terminal: Terminal, needed: bool) -> int:
    """List every third-party program with its licence and pinned versions."""
    catalogue = catalogue_of(app, needed=needed)
    rows = [_component_json(*item) for item in catalogue.components.items()]
    terminal.show(_document({"components": rows}), _text(_catalogue_lines(catalogue)))
    return ExitCode.OK


@command.command("fetch")
@reading(SelectComponents, yes_option)
def fetch_(*, app: App, terminal: Terminal, request: SelectComponents) -> int:
    """Fetch the components of a site into the cache of this host, verified."""
    result = fetch_components(app, request)
    terminal.show(_document(_set_json(result)), _text(_artifact_lines(result.files, result.images)))
    return ExitCode.OK


@command.command("status")
@reading(SelectComponents)
def status(*, app: App, terminal: Terminal, request: SelectComponents) -> int:
    """Show the components of a site in the cache. Exit code 4 when a component is missing."""
    found = cache_status(app, request)
    data = {
        "ok": found.complete,
        "cache": str(default_cache()),
        "source": found.source,
        "kubernetes_version": found.kubernetes_version,
        "components": [
            {"component": name, "version": version, "cached": ready} for (name, version), ready in found.cached.items()
        ],
        "missing_packages": list(found.missing_packages),
    }
    lines = (f"{name:<26}{version:<10}{'ready' if ok else 'missing'}" for (name, version), ok in found.cached.items())
    terminal.show(_document(data), _text(lines))
    return ExitCode.OK if found.complete else ExitCode.PREFLIGHT_FAILED


@command.command("bundle")
@reading(WriteBundle)
def bundle_(*, app: App, terminal: Terminal, request: WriteBundle) -> int:
    """Write the components of a site to the offline file TARGET, for component_source: bundle on another host."""
    path = write_component_bundle(app, request, terminal.say)
    digest, size = sha256_of(path), path.stat().st_size
    terminal.show(
        _document({"path": str(path), "sha256": digest, "size": size}), f"{path}  {size >> 20} MB  sha256:{digest}\n"
    )
    return ExitCode.OK


def _text(lines: Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _document(data: dict[str, Any]) -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, **data}


def _component_json(name: str, component: Component) -> dict[str, Any]:
    return {
        "component": name,
        "summary": component.summary,
        "licence": component.licence,
        "home": component.home,
        "files": list(component.files),
        "images": list(component.image_names),
        "manifests": list(component.manifests),
        "wheels": dict(component.wheels),
        "lacks": dict(component.lacks),
        "digests": {version: dict(release.digests) for version, release in component.versions.items()},
        "versions": {
            version: [family for family in ("modules", "upstream") if component.has(version, family)]
            for version in component.versions
        },
    }


def _catalogue_lines(catalogue: Catalogue) -> Iterator[str]:
    for name, component in catalogue.components.items():
        yield f"{name} - {component.summary} ({component.licence}, {component.home})"
        for version in component.versions:
            families = [family for family in ("modules", "upstream") if component.has(version, family)]
            yield f"  {version:<10}from {', '.join(families)}{_pins(component, version)}"
        if component.wheels:
            yield f"  wheels: {', '.join(f'{wheel} ({licence})' for wheel, licence in component.wheels.items())}"


def _pins(component: Component, version: str) -> str:
    """How the images of upstream are known: by digest, or by their tags alone."""
    release = component.versions[version]
    if not component.images or not component.has(version, "upstream"):
        return ""
    by_tag = [name for name in component.images if not release.digest(name)]
    return f"; by tag, not by digest: {', '.join(by_tag)}" if by_tag else "; images by digest"


def _artifact_lines(files: Sequence[FileArtifact], images: Sequence[ImageArtifact]) -> Iterator[str]:
    for file in files:
        yield f"file   {file.name:<26}{file.version:<10}{file.size >> 20:>5} MB  sha256:{file.sha256}"
    for image in images:
        yield f"image  {image.repository:<26}{image.tag:<10}          {image.manifest_digest}"


def _set_json(result: ComponentSet) -> dict[str, Any]:
    return {
        "kubernetes_version": result.kubernetes_version,
        "files": [
            {
                "name": file.name,
                "version": file.version,
                "kind": file.kind,
                "path": str(file.path),
                "sha256": file.sha256,
                "size": file.size,
            }
            for file in result.files
        ],
        "images": [
            {
                "repository": image.repository,
                "tag": image.tag,
                "manifest_digest": image.manifest_digest,
                "layout": str(image.layout),
            }
            for image in result.images
        ],
        "manifests": [
            {"name": it.name, "version": it.version, "path": str(it.path), "sha256": it.sha256}
            for it in result.manifests
        ],
    }
