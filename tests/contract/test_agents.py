"""Agents run on machines: Python 3.9, the standard library, and no other part of the package."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.addons import ROOT

AGENTS = ROOT / "installer/pai_install/agents"
FILES = sorted(AGENTS.rglob("*.py"))


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def allowed(path: Path) -> set[str]:
    """Packages of ours that a file may import: its own agent and common."""
    return {"pai_install.agents.common", f"pai_install.agents.{path.relative_to(AGENTS).parts[0]}"}


def test_agents_import_themselves_and_the_standard_library() -> None:
    offenders = []
    for path in FILES:
        for name in imported(ast.parse(path.read_text())):
            ours = any(name == it or name.startswith(f"{it}.") for it in allowed(path))
            if not ours and name.partition(".")[0] not in sys.stdlib_module_names:
                offenders.append(f"{path.name}: {name}")
    assert FILES
    assert not offenders


def unions(tree: ast.AST) -> Iterator[ast.AST]:
    """Unions with | outside of annotations: Python 3.9 evaluates them and fails."""
    for node in ast.iter_child_nodes(tree):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.BitOr)
            and any(isinstance(it, ast.Subscript) or _is_none(it) for it in (node.left, node.right))
        ):
            yield node
        yield from unions(node)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def without_annotations(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        for field in ("annotation", "returns"):
            if hasattr(node, field):
                setattr(node, field, None)
    return tree


def test_agents_run_with_python_3_9() -> None:
    offenders = []
    for path in FILES:
        tree = ast.parse(path.read_text(), feature_version=(3, 9))
        offenders += [f"{path.name}:{getattr(it, 'lineno', 0)}" for it in unions(without_annotations(tree))]
    assert not offenders
    assert list(unions(without_annotations(ast.parse("X = list[int] | None\ny: int | None = 1"))))
