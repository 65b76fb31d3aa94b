"""No name means two things in one function: a comprehension's variable, and outside of it something of the module.

Python 3.12 before 3.12.4, which Ubuntu 24.04 has, takes the second for the first and ends with an UnboundLocalError.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(path for folder in ("installer", "playbooks", "roles") for path in (ROOT / folder).rglob("*.py"))
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp
Function = ast.FunctionDef | ast.AsyncFunctionDef


def bound(comprehension: Comprehension) -> frozenset[str]:
    """Names of a comprehension's variables."""
    targets = (node for one in comprehension.generators for node in ast.walk(one.target))
    return frozenset(node.id for node in targets if isinstance(node, ast.Name))


def uses(node: ast.AST, within: frozenset[str] = frozenset()) -> Iterator[tuple[str, bool]]:
    """Names that are read below a node, and whether a comprehension around them binds them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
            yield child.id, child.id in within
        yield from uses(child, within | bound(child) if isinstance(child, Comprehension) else within)


def twofold(function: Function) -> set[str]:
    """Names of a function that comprehensions bind, and that it reads outside of them without binding them itself."""
    inner = {name for node in ast.walk(function) if isinstance(node, Comprehension) for name in bound(node)}
    comprehended = {
        id(name)
        for node in ast.walk(function)
        if isinstance(node, Comprehension)
        for one in node.generators
        for name in ast.walk(one.target)
    }
    stored = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in comprehended
    }
    own = stored | {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    body = (use for statement in function.body for use in uses(ast.Module([statement], [])))
    return {name for name, is_bound in body if not is_bound and name in inner} - own


def found_in(source: str) -> list[str]:
    """FUNCTION:LINE: NAME for each such name."""
    functions = (node for node in ast.walk(ast.parse(source)) if isinstance(node, Function))
    return [
        f"{function.name}:{function.lineno}: {name}" for function in functions for name in sorted(twofold(function))
    ]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f():\n    a = {g for g in x}\n    return [g(one) for one in x]", ["f:1: g"]),
        ("def f():\n    a = [g for g in x]\n    return g(a)", ["f:1: g"]),
        ("def f():\n    a = [g for g in x]\n    return [g for g in a]", []),
        ("def f(g):\n    a = [g for g in x]\n    return g", []),
        ("def f():\n    g = 1\n    a = [g for g in x]\n    return g", []),
        ("def f():\n    return [g for g in x], lambda: g", []),
    ],
)
def test_the_search_itself(source: str, names: list[str]) -> None:
    assert found_in(source) == names


def test_no_name_is_a_comprehension_s_and_the_module_s() -> None:
    assert [f"{path.relative_to(ROOT)}: {one}" for path in FILES for one in found_in(path.read_text())] == []
