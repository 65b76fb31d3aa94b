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


def _versions(catalogue: Catalogue, name: str, family: Family) -> str:
    pinned = [
        chosen.kubernetes[family] if name == "kubernetes" else chosen.with_.get(name, "")
        for chosen in catalogue.kubernetes.sets.values()
    ]
    found = [version or catalogue.components[name].default.get(family, "-") for version in pinned]
    return ", ".join(dict.fromkeys(found))
