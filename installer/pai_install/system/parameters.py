"""How a field of a request appears on a command line, where its name, type, and description do not say enough."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameter:
    """Metadata of a field: `nodes: Annotated[tuple[str, ...], Parameter(positional=True, metavar="NODE")]`.

    flag: the option's name where the field has another. default: a default in words, for help.
    split: values may hold several words, with commas between them. hidden: the field is not an option.
    bare: the value of an option that is given without one.
    """

    flag: str = ""
    metavar: str = ""
    positional: bool = False
    default: str = ""
    split: bool = False
    hidden: bool = False
    bare: str = ""


PLAIN = Parameter()
