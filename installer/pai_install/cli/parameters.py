"""Click options and arguments from the fields of a pydantic model: a request, or an operation."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import click
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from pai_install.errors import ExitCode, PaiError
from pai_install.system.parameters import PLAIN, Parameter

Model = TypeVar("Model", bound=BaseModel)
# pydantic's names of the bounds of a number
_BOUNDS = ("ge", "gt", "le", "lt")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def parameters(model: type[BaseModel]) -> list[Decorator]:
    """One click decorator per field, in the order of the fields."""
    fields = model.model_fields.items()
    return [_decorator(name, field) for name, field in fields if not _metadata(field).hidden]


def values_of(model: type[BaseModel], words: dict[str, Any]) -> dict[str, Any]:
    """Takes the model's values out of the words that click gives to a command."""
    names = [name for name, field in model.model_fields.items() if not _metadata(field).hidden]
    return {name: words.pop(name) for name in names}


def checked(model: type[Model], values: Mapping[str, Any]) -> Model:
    """The model with the values. Raises PaiError (usage) for a value that it refuses."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        # where a validator of ours refuses a value, pydantic's own messages only follow from that
        details = [detail for detail in error.errors() if detail["type"] == "value_error"] or error.errors()
        reasons = ", ".join(str(detail["msg"]).removeprefix("Value error, ") for detail in details)
        raise PaiError(reasons, code="argument-invalid", exit_code=ExitCode.USAGE) from None


def _metadata(field: FieldInfo) -> Parameter:
    return next((one for one in field.metadata if isinstance(one, Parameter)), PLAIN)


def _decorator(name: str, field: FieldInfo) -> Decorator:
    parameter, kind = _metadata(field), _without_none(field.annotation)
    many = get_origin(kind) is tuple
    value = _click_type(get_args(kind)[0] if many else kind, field)
    if parameter.positional:
        # for click, a default of None is a value: an argument without one would not be missing
        optional: dict[str, Any] = {} if many or field.is_required() else {"default": field.get_default()}
        return click.argument(
            name,
            metavar=parameter.metavar or None,
            type=value,
            nargs=-1 if many else 1,
            required=field.is_required(),
            **optional,
        )
    flag = parameter.flag or f"--{name.replace('_', '-')}"
    default = None if field.is_required() else field.get_default()
    help_text = field.description or ""
    if parameter.default:
        help_text = f"{help_text}  [default: {parameter.default}]"
    if kind is bool and default is True:
        flag = f"--no-{name.replace('_', '-')}"
        return click.option(flag, name, is_flag=True, flag_value=False, default=True, help=help_text)
    if kind is bool:
        if default is None and "/" not in flag:
            # With a default of None, there are three values: yes, no, and no answer.
            flag = f"{flag}/--no-{flag.removeprefix('--')}"
        return click.option(flag, name, is_flag=True, default=default, help=help_text)
    more: dict[str, Any] = {"is_flag": False, "flag_value": parameter.bare} if parameter.bare else {}
    if not field.is_required():
        more["default"] = () if many else default
    return click.option(
        flag,
        name,
        **more,
        type=value,
        required=field.is_required(),
        multiple=many,
        metavar=parameter.metavar or None,
        show_default=not parameter.default and default not in (None, "", ()),
        callback=split_words if parameter.split else None,
        help=help_text,
    )


def _without_none(annotation: Any) -> Any:  # noqa: ANN401 - a type
    """`int | None` -> int."""
    if get_origin(annotation) in (Union, types.UnionType):
        return next(one for one in get_args(annotation) if one is not type(None))
    return annotation


def _click_type(kind: Any, field: FieldInfo) -> Any:  # noqa: ANN401 - types
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    if kind is Path:
        existing = any(getattr(one, "path_type", "") == "file" for one in field.metadata)  # pydantic's FilePath
        return click.Path(exists=existing, dir_okay=not existing, path_type=Path)
    if kind not in (int, float):
        return str if kind is str else None
    bounds = {name: getattr(one, name) for one in field.metadata for name in _BOUNDS if hasattr(one, name)}
    if not bounds:
        return kind
    least, most = bounds.get("ge", bounds.get("gt")), bounds.get("le", bounds.get("lt"))
    ranged = click.IntRange if kind is int else click.FloatRange
    return ranged(least, most, min_open="gt" in bounds, max_open="lt" in bounds)


def split_words(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Splits each value at commas, drops repetitions, and keeps the order.

    Raises BadParameter for a value without a word: an empty shell variable must not mean everything.
    """
    words: list[str] = []
    for value in values:
        found = [word for part in value.split(",") if (word := part.strip())]
        if not found:
            raise click.BadParameter(
                f"{value!r} is empty. Leave the option out to select all.", ctx=context, param=parameter
            )
        words += found
    return tuple(dict.fromkeys(words))
