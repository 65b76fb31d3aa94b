"""The tables of checks and ports in docs/preflight.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pai_install.parts import registry
from pai_install.preflight.catalogue import CATALOGUE
from pai_install.site.load import load_site
from tests.docs.markdown import table, with_generated


def with_preflight(text: str, root: Path) -> str:
    """The page with its tables made anew. Raises ValueError where it has no marks."""
    checks = table(("Check", "What must be so"), ((f"`{name}`", CATALOGUE[name].title) for name in sorted(CATALOGUE)))
    return with_generated(text, checks, _ports(root / "layouts" / "three-node"))


def _ports(example: Path) -> Iterator[str]:
    """Every port, and on which machines."""
    site = load_site(example).site
    master = next(machine for machine in site.machines if machine.control_plane)
    worker = next(machine for machine in site.machines if not machine.control_plane)
    everywhere = {str(need) for need in registry.ports(site, worker)}
    rows = []
    for need in {str(need): need for need in registry.ports(site, master)}.values():
        where = "every machine" if str(need) in everywhere else "control planes"
        rows.append((f"{need} {need.purpose}", where + (", from the machine itself" if need.local else "")))
    yield from table(("Port", "On"), rows)
