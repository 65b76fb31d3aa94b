"""The tables of checks and ports in docs/preflight.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pai_install.parts import registry
from pai_install.parts.part import Port
from pai_install.preflight.catalogue import CATALOGUE
from pai_install.site.load import load_site
from tests.docs.markdown import table, with_generated


def with_preflight(text: str, root: Path) -> str:
    """The page with its tables made anew. Raises ValueError where it has no marks."""
    checks = table(("Check", "What must be so"), ((f"`{name}`", CATALOGUE[name].title) for name in sorted(CATALOGUE)))
    return with_generated(text, checks, _ports(root / "layouts" / "team"))


def _ports(example: Path) -> Iterator[str]:
    """Every port, and on which machines."""
    site = load_site(example).site
    master = next(machine for machine in site.machines if machine.control_plane)
    worker = next(machine for machine in site.machines if machine.worker and not machine.control_plane)
    server = worker.model_copy(update={"roles": frozenset({"storage"})})
    everywhere = {str(need) for need in registry.ports(site, worker)}
    wanted: dict[str, tuple[Port, str]] = {}
    for machine, place in ((master, "control planes"), (server, "storage servers")):
        for need in registry.ports(site, machine):
            wanted.setdefault(str(need), (need, "every machine" if str(need) in everywhere else place))
    rows = (
        (f"{need} {need.purpose}", where + (", from the machine itself" if need.local else ""))
        for need, where in wanted.values()
    )
    yield from table(("Port", "On"), rows)
