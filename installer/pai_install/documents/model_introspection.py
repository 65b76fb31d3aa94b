"""The structure of models, for the pages, schemas, and masks that are derived from them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import get_args

from pydantic import BaseModel


def parts(annotation: object) -> Iterator[object]:
    """Yields an annotation and everything in its brackets, at any depth."""
    yield annotation
    for argument in get_args(annotation):
        yield from parts(argument)


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yields the models that an annotation names."""
    yield from (part for part in parts(annotation) if isinstance(part, type) and issubclass(part, BaseModel))


def models_below(model: type[BaseModel]) -> tuple[type[BaseModel], ...]:
    """Returns the model and all models of its fields, without duplicates."""
    found = {model: None}
    waiting = [model]
    while waiting:
        for info in waiting.pop().model_fields.values():
            new = [inner for inner in models_in(info.annotation) if inner not in found]
            found |= dict.fromkeys(new)
            waiting += new
    return tuple(found)


@cache
def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Returns attribute -> its docstring in the source. pydantic could keep them, but this makes imports slow."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            found |= _written_below(base)
    return found


def _written_below(model: type[BaseModel]) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    assert isinstance(tree, ast.ClassDef)  # noqa: S101 - the source of a class
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(tree.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
