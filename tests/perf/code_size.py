"""How big the parts of the code are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.perf.budgets import Measure
from tests.perf.process import ROOT

# Runs alone on machines, so that it cannot be divided: not counted among the modules.
STANDALONE = "health/collect/collector.py"
SOURCES = ("installer/pai_install", "playbooks")


def code_size(root: Path = ROOT) -> list[Measure]:
    """Lines of modules and functions of the package, and of all Python tests to all Python sources."""
    package = root / SOURCES[0]
    modules = {path.relative_to(package).as_posix(): path.read_text() for path in sorted(package.rglob("*.py"))}
    lengths = {name: text.count("\n") for name, text in modules.items() if text.strip() and name != STANDALONE}
    lengths = {name: lines for name, lines in lengths.items() if not name.endswith("__init__.py")}
    functions = {f"{name}:{place}": lines for name in lengths for place, lines in _functions(modules[name])}
    sources = sum(_lines(root / folder) for folder in SOURCES)
    longest, longest_function = max(lengths, key=lengths.__getitem__), max(functions, key=functions.__getitem__)
    return [
        Measure("module_lines_median", median(lengths.values()), f"{len(lengths)} modules"),
        Measure("module_lines_longest", lengths[longest], longest),
        Measure("function_lines_median", median(functions.values()), f"{len(functions)} functions"),
        Measure("function_lines_longest", functions[longest_function], longest_function),
        Measure("test_to_source_lines", _lines(root / "tests") / sources, f"{sources} lines of source"),
    ]


def _functions(text: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def _lines(folder: Path) -> int:
    return sum(path.read_text().count("\n") for path in folder.rglob("*.py"))
