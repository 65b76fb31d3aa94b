"""`pai-install components list|fetch|status|bundle`: what is pinned, and what of it is on the dev box."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import click

from pai_install.cli.options import format_option, group_site_option, site_option, yes_option
from pai_install.components.access import Mirror
from pai_install.components.bundle import write_bundle
from pai_install.components.catalogue import Catalogue, Component, load_catalogue
from pai_install.components.choose import choose
from pai_install.components.fetch import cached, fetch, requirements
from pai_install.components.model import ComponentSet, FileArtifact, ImageArtifact, Selection, SourceName
from pai_install.components.source import Source
from pai_install.components.store import default_cache, sha256_of
from pai_install.errors import ExitCode
from pai_install.system.packages import install

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class _Choice:
    selection: Selection
    source: Source


def _options(function: Callable[..., int]) -> Callable[..., int]:
    """What fetch and status are told: a site, or a source and a version instead of one."""
    options = (
        site_option,
        click.option(
            "--source",
            type=click.Choice(["upstream", "mirror", "bundle", "modules"]),
            help="Where components come from, instead of the site's component_source.",
        ),
        click.option("--mirror-url", default="", help="Address of the mirror, with --source mirror."),
        click.option("--bundle", type=click.Path(path_type=Path), help="The offline file, with --source bundle."),
        click.option("--kubernetes-version", default="", help="For example 1.36 or 1.36.3, instead of the site's."),
        format_option,
    )
    for option in reversed(options):
        function = option(function)
    return function


def _choose(site_dir: Path, source: str | None, mirror_url: str, bundle: Path | None, version: str) -> _Choice:
    """What the site needs; with --source no site is read: all of the catalogue."""
    needed, images, mirror = None, None, Mirror(mirror_url)
    if source is None:
        from pai_install.parts.registry import needed_components  # noqa: PLC0415 - slow, needed here only
        from pai_install.parts.selection import mirror_of  # noqa: PLC0415 - the same
        from pai_install.site import load_site  # noqa: PLC0415 - the same

        site = load_site(site_dir).site
        source = site.settings.component_source
        mirror = mirror if mirror_url else mirror_of(site)
        bundle = bundle or site.settings.component_bundle
        version = version or site.settings.kubernetes_version
        needed, images = needed_components(site), site.settings.component_images
    name = cast("SourceName", source)
    chosen = choose(load_catalogue(), name, version, mirror=mirror, bundle=bundle, needed=needed, images=images)
    return _Choice(*chosen)


@click.group
@group_site_option
def command() -> None:
    """List, fetch and verify third-party programs."""


@command.command("list")
@site_option
@click.option("--needed", is_flag=True, help="Only what the site needs: by its machines, settings and add-ons.")
@format_option
def list_(*, site_dir: Path, needed: bool, output_format: str) -> int:
    """Show every third-party program with its licence and pinned versions."""
    catalogue = load_catalogue()
    if needed:
        catalogue = _only_needed(catalogue, site_dir)
    if output_format == "json":
        _print_json({"components": [_component_json(*item) for item in catalogue.components.items()]})
    else:
        for line in _catalogue_lines(catalogue):
            click.echo(line)
    return ExitCode.OK


@command.command("fetch")
@_options
@yes_option
def fetch_(
    *,
    site_dir: Path,
    source: str | None,
    mirror_url: str,
    bundle: Path | None,
    kubernetes_version: str,
    output_format: str,
    yes: bool,
) -> int:
    """Bring everything a site needs into the cache of the dev box, verified."""
    choice = _choose(site_dir, source, mirror_url, bundle, kubernetes_version)
    lacking = requirements(choice.selection, choice.source)
    if lacking:
        click.echo(f"needed on the dev box, as Debian packages: {' '.join(lacking)}", err=True)
        if yes or click.confirm("Install them now?", err=True):
            install(lacking)
    result = fetch(choice.selection, choice.source, progress=lambda line: click.echo(line, err=True))
    if output_format == "json":
        _print_json(_set_json(result))
    else:
        for line in _artifact_lines(result.files, result.images):
            click.echo(line)
    return ExitCode.OK


@command.command("status")
@_options
def status(
    *,
    site_dir: Path,
    source: str | None,
    mirror_url: str,
    bundle: Path | None,
    kubernetes_version: str,
    output_format: str,
) -> int:
    """Show which of a site's components are in the cache. Exit status 0, or 4 when some are missing."""
    choice = _choose(site_dir, source, mirror_url, bundle, kubernetes_version)
    found = cached(choice.selection, choice.source)
    complete = all(found.values())
    if output_format == "json":
        _print_json(
            {
                "ok": complete,
                "cache": str(default_cache()),
                "source": choice.source.name,
                "kubernetes_version": choice.selection.kubernetes_version,
                "components": [
                    {"component": pick.component, "version": pick.version, "cached": entry is not None}
                    for pick, entry in found.items()
                ],
                "missing_packages": list(requirements(choice.selection, choice.source)),
            }
        )
    else:
        for pick, entry in found.items():
            click.echo(f"{pick.component:<26}{pick.version:<10}{'ready' if entry else 'not fetched'}")
    return ExitCode.OK if complete else ExitCode.PREFLIGHT_FAILED


@command.command("bundle")
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path))
@_options
def bundle_(
    *,
    target: Path,
    site_dir: Path,
    source: str | None,
    mirror_url: str,
    bundle: Path | None,
    kubernetes_version: str,
    output_format: str,
) -> int:
    """Write everything a site needs into the offline file TARGET, for component_source: bundle elsewhere."""
    choice = _choose(site_dir, source, mirror_url, bundle, kubernetes_version)
    write_bundle(choice.selection, choice.source, target, progress=lambda line: click.echo(line, err=True))
    if output_format == "json":
        _print_json({"path": str(target), "sha256": sha256_of(target), "size": target.stat().st_size})
    else:
        click.echo(f"{target}  {target.stat().st_size >> 20} MB  sha256:{sha256_of(target)}")
    return ExitCode.OK


def _only_needed(catalogue: Catalogue, site_dir: Path) -> Catalogue:
    from pai_install.parts.registry import needed_components  # noqa: PLC0415 - slow, needed here only
    from pai_install.site import load_site  # noqa: PLC0415 - the same

    needed = needed_components(load_site(site_dir).site)
    components = {name: component for name, component in catalogue.components.items() if name in needed}
    return catalogue.model_copy(update={"components": components})


def _print_json(document: dict[str, Any]) -> None:
    click.echo(json.dumps({"schema_version": SCHEMA_VERSION, **document}, indent=2))


def _component_json(name: str, component: Component) -> dict[str, Any]:
    return {
        "component": name,
        "summary": component.summary,
        "licence": component.licence,
        "home": component.home,
        "files": list(component.files),
        "images": list(component.images),
        "manifests": list(component.manifests),
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
