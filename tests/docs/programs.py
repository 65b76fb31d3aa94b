"""Third-party programs, from the catalogue."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.components.catalogue import Catalogue, Family, load_catalogue
from tests.docs.markdown import page, table


def components_page() -> str:
    """docs/reference/components.md."""
    return page("Component versions", _lines(load_catalogue()))


def _lines(catalogue: Catalogue) -> Iterator[str]:
    minors = ", ".join(catalogue.kubernetes.sets)
    yield "What pai-install brings; how it gets here: [Components](../components.md). Several versions in one cell are"
    yield f"for Kubernetes {minors}, in this order; the default is {catalogue.kubernetes.default}. Sources `mirror` and"
    yield "`bundle` carry what `upstream` or the source of the bundle has. A dash: there is only its makers' image."
    yield ""
    rows = []
    for name, component in catalogue.components.items():
        cells = (_versions(catalogue, name, "modules"), _versions(catalogue, name, "upstream"))
        rows.append((f"[{name}]({component.home})", component.summary, *cells, component.licence))
    yield from table(("Component", "What it is", "Source `modules`", "Source `upstream`", "Licence"), rows)
    yield ""
    yield f"Source `modules` builds with Go {catalogue.go.version} or newer."
    yield from _hosts(catalogue)
    yield from _images(catalogue)
    yield from _architectures(catalogue)


def _hosts(catalogue: Catalogue) -> Iterator[str]:
    yield from ("", "## Hosts", "")
    yield "Servers of the source `upstream`, by HTTPS from this host: the host in an address, and those that it"
    yield "sends on to for a login or for the bytes. `*` stands for what differs by place and time. A site needs those"
    yield "of its components."
    yield ""
    rows = [(f"`{host}`", ", ".join(f"`{it}`" for it in others) or "-") for host, others in catalogue.servers.items()]
    yield from table(("Host", "Sends on to"), rows)


def _images(catalogue: Catalogue) -> Iterator[str]:
    yield from ("", "## Images", "")
    yield "How images of the sources `upstream` and `mirror` are known."
    yield ""
    rows = [
        (
            f"`{spec.from_}:{spec.tag.format(version=version)}`",
            f"`{release.digest(image)}`" if release.digest(image) else "its tag alone",
        )
        for component in catalogue.components.values()
        for version, release in component.versions.items()
        for image, spec in component.images.items()
        if image in release.digests
    ]
    yield from table(("Image", "Known by"), rows)


def _architectures(catalogue: Catalogue) -> Iterator[str]:
    yield from ("", "## Architectures", "")
    yield "Upstream has everything for amd64 and arm64 but for these."
    yield ""
    rows = [
        (name, architecture, why)
        for name, component in catalogue.components.items()
        for architecture, why in component.lacks.items()
    ]
    yield from table(("Component", "Lacks", "Why"), rows)


def _versions(catalogue: Catalogue, name: str, family: Family) -> str:
    pinned = [
        chosen.kubernetes[family] if name == "kubernetes" else chosen.with_.get(name, "")
        for chosen in catalogue.kubernetes.sets.values()
    ]
    found = [version or catalogue.components[name].default.get(family, "-") for version in pinned]
    return ", ".join(dict.fromkeys(found))
