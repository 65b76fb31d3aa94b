"""Foreign JSON has one parser with limits, agents.common.values. Other uses of Python's own are listed here."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

from tests.addons import ROOT

PACKAGE = ROOT / "installer" / "pai_install"
# file or folder of the package -> the texts that it parses with Python's own parser
ALLOWED: Mapping[str, str] = {
    "agents/common/values.py": "the parser with limits",
    "app/runs.py": "reports of our own runs",
    "components/": "files of pinned components, with checksums",
    "health/collect/collector.py": "output of programs, on the machine itself, with a limit of size",
    "health/memory/store.py": "our own state folder",
    "lab/": "our own state folder",
    "run/journal.py": "our own state folder",
    "run/lock.py": "our own state folder",
    "run/saved.py": "a plan that the administrator made",
    "run/support/bundle.py": "our own state folder",
    "system/plain.py": "evidence, for health/evidence/file.py, which limits its size; it cuts deep values off",
}


def parses(path: Path) -> bool:
    """Whether a module calls json.load, json.loads, or makes a decoder."""
    names = {"load", "loads", "JSONDecoder"}
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "json"
        and node.attr in names
        for node in ast.walk(ast.parse(path.read_text()))
    )


def test_foreign_json_is_parsed_with_limits() -> None:
    files = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if parses(path)}
    assert {name for name in files if not name.startswith(tuple(ALLOWED))} == set()
    assert {name for name in ALLOWED if not any(file.startswith(name) for file in files)} == set()


def test_nobody_imports_functions_of_json() -> None:
    """`from json import loads` would pass the test above."""
    offenders = [
        path.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "json"
    ]
    assert not offenders
