"""Every process of a run finds the same tests in the same order: no parameters come from a set.

Workers that find different tests refuse to run anything (pytest-xdist), whatever made the difference.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def is_unordered(node: ast.expr, constants: dict[str, ast.expr]) -> bool:
    """Whether an expression is a set, or an operation on one, as far as the file itself says."""
    inner: list[ast.expr] = []
    match node:
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[argument]):
            inner = [argument]
        case ast.BinOp(left=left, right=right):
            inner = [left, right]
        case ast.Call(func=ast.Attribute(value=value)) | ast.Attribute(value=value):
            inner = [value]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            inner = [it.value for it in items if isinstance(it, ast.Starred)]
        case ast.ListComp(generators=[generator, *_]) | ast.GeneratorExp(generators=[generator, *_]):
            inner = [generator.iter]
        case ast.Name(id=name) if name in constants:
            return is_unordered(constants[name], {key: value for key, value in constants.items() if key != name})
    return any(is_unordered(it, constants) for it in inner)


def unordered_parameters(source: str) -> Iterator[int]:
    """Lines of `parametrize` that take their values from a set."""
    tree = ast.parse(source)
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "parametrize":
            values = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "argvalues")]
            if any(is_unordered(value, constants) for value in values):
                yield node.lineno


def test_no_parameters_come_from_a_set() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for line in unordered_parameters(path.read_text())
    ] == []


def test_sets_are_recognized() -> None:
    source = """
NAMES = {"a", "b"}
@pytest.mark.parametrize("x", NAMES)
@pytest.mark.parametrize("x", sorted(NAMES))
@pytest.mark.parametrize("x", [*NAMES, "c"])
@pytest.mark.parametrize("x", list({y for y in z} | OTHER))
def test(x): ...
"""
    assert list(unordered_parameters(source)) == [3, 5, 6]
