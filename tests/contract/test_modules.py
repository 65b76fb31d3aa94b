"""Modules: what they return is theirs, and no word of Ansible's own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "playbooks" / "library").glob("pai_*.py"))
# With `unreachable` Ansible takes the machine out of the run, `failed` fails the task, `skipped` hides it.
ANSIBLES = {"unreachable", "failed", "skipped", "exception", "deprecations"}


def returned(path: Path) -> Iterator[str]:
    """The names that a module gives to exit_json and fail_json."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in {"exit_json", "fail_json"}:
            yield from (word.arg for word in node.keywords if word.arg)


def test_no_result_is_called_as_one_of_ansibles() -> None:
    assert {path.stem: names for path in MODULES if (names := ANSIBLES.intersection(returned(path)))} == {}
