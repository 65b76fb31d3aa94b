"""No module of the package imports itself through others, and health's folders import along its pipeline."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "installer" / "pai_install"
# folder of health -> folders it may import from; what lies beside the folders (checkup, gate) may use all of them
HEALTH: Mapping[str, set[str]] = {
    "evidence": set(),
    "collect": {"evidence"},
    "memory": {"evidence", "collect"},
    "judge": {"evidence", "memory"},
    "act": {"evidence", "memory", "judge"},
}


def name_of(path: Path) -> str:
    """The dotted name of a module; that of a package's __init__ is the package's."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported(path: Path) -> Iterator[str]:
    """Modules of the package that a module imports anywhere: at its top, in functions, for types only."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield from (_target(node.module, alias.name) for alias in node.names)


def _target(module: str, name: str) -> str:
    return f"{module}.{name}" if f"{module}.{name}" in MODULES else module


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """One circle of a graph, as the names along it; empty when there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})
    assert circle({"a": {"b", "c"}, "b": {"c"}}) == []


def test_no_module_imports_itself_through_others() -> None:
    assert circle({name: set(imported(path)) - {name} for name, path in MODULES.items()}) == []


def test_healths_folders_import_along_its_pipeline() -> None:
    for name, path in MODULES.items():
        room, _, inside = name.removeprefix("pai_install.").partition(".")
        folder = inside.partition(".")[0]
        if room == "health" and folder in HEALTH:
            others = {other.split(".")[2] for other in imported(path) if other.startswith("pai_install.health.")}
            assert (others & HEALTH.keys()) - {folder} <= HEALTH[folder], f"{name} imports against the pipeline"
