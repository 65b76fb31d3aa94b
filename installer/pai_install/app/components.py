"""Use cases of components: the catalogue, the cache of this host, and the offline file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pai_install.app.context import App
from pai_install.components.access import Mirror
from pai_install.components.bundle import write_bundle
from pai_install.components.catalogue import Catalogue, load_catalogue
from pai_install.components.choose import choose
from pai_install.components.fetch import cached, fetch, requirements
from pai_install.components.model import Selection, SourceName
from pai_install.components.report import BundleReport, CachedComponent, CacheReport, ComponentsReport
from pai_install.components.source import Source
from pai_install.components.store import default_cache, sha256_of
from pai_install.parts.registry import needed_components
from pai_install.parts.selection import mirror_of
from pai_install.system.packages import install
from pai_install.system.parameters import Parameter

_CHOICE = "the site's component_source"


class SelectComponents(BaseModel):
    """The components of a site, or with `source` all components of the catalogue. With `source` no site is read."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    source: Annotated[SourceName | None, Parameter(default=_CHOICE)] = Field(
        None, description="Source of the components."
    )
    mirror_url: str = Field("", description="Address of the mirror, with --source mirror.")
    bundle: Annotated[Path | None, Parameter(metavar="FILE")] = Field(
        None, description="The offline file, with --source bundle."
    )
    kubernetes_version: Annotated[str, Parameter(default="the site's")] = Field(
        "", description="Version of Kubernetes: 1.36 or 1.36.3."
    )


class WriteBundle(SelectComponents):
    """The offline file of a site."""

    target: Annotated[Path, Parameter(positional=True, metavar="TARGET")]


def catalogue_of(app: App, *, needed: bool) -> Catalogue:
    """Returns the catalogue. needed: only the components of the site."""
    catalogue = load_catalogue()
    if not needed:
        return catalogue
    names = needed_components(app.site)
    components = {name: component for name, component in catalogue.components.items() if name in names}
    return catalogue.model_copy(update={"components": components})


def fetch_components(app: App, request: SelectComponents) -> ComponentsReport:
    """Fetches or builds the components, verified. Asks before it installs Debian packages of builds.

    Raises PaiError for a component that is unavailable.
    """
    selection, source = _selection(app, request)
    packages = requirements(selection, source)
    if packages:
        app.notify(f"needed on this host, as Debian packages: {' '.join(packages)}")
        if app.confirm("install them now"):
            install(packages)
    return ComponentsReport.model_validate(fetch(selection, source, progress=app.notify))


def cache_status(app: App, request: SelectComponents) -> CacheReport:
    """The components in the cache of this host."""
    selection, source = _selection(app, request)
    found = tuple(
        CachedComponent(component=pick.component, version=pick.version, cached=entry is not None)
        for pick, entry in cached(selection, source).items()
    )
    return CacheReport(
        ok=all(one.cached for one in found),
        cache=default_cache(),
        source=source.name,
        kubernetes_version=selection.kubernetes_version,
        components=found,
        missing_packages=requirements(selection, source),
    )


def write_component_bundle(app: App, request: WriteBundle) -> BundleReport:
    """Writes the offline file, for `component_source: bundle` of another host."""
    write_bundle(*_selection(app, request), request.target, progress=app.notify)
    path = request.target
    return BundleReport(path=path, sha256=sha256_of(path), size=path.stat().st_size)


def _selection(app: App, request: SelectComponents) -> tuple[Selection, Source]:
    needed, images, mirror = None, None, Mirror(request.mirror_url)
    name, bundle, version = request.source, request.bundle, request.kubernetes_version
    if name is None:
        settings = app.site.settings
        name, bundle = settings.component_source, bundle or settings.component_bundle
        mirror = mirror if request.mirror_url else mirror_of(app.site)
        version = version or settings.kubernetes_version
        needed, images = needed_components(app.site), settings.component_images
    return choose(load_catalogue(), name, version, mirror=mirror, bundle=bundle, needed=needed, images=images)
