"""Readers of single values: text as written to a typed value, or a sentence about its error.

Every reader also accepts its own results, so that Python code can create models.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationInfo
from pydantic_core import PydanticCustomError

from pai_install.documents.document import Document, Entries, Items, Text
from pai_install.documents.problem import short
from pai_install.documents.quantity import QuantityError, format_bytes, parse_bytes

_TRUE = frozenset({"true", "yes", "on"})
_FALSE = frozenset({"false", "no", "off"})
_WHOLE = re.compile(r"[+-]?[0-9][0-9_]{0,17}")
MIN_MEMORY = 2**20
# more than any machine has; Kubernetes itself ends at 8Ei
MAX_MEMORY = 2**50
MAX_COUNT = 10_000
# an image has room in it; more than the disks of any machine
MIN_SIZE = 2**30
MAX_SIZE = 2**60


def invalid(code: str, message: str, remedy: str = "") -> PydanticCustomError:
    """Returns an error for a validator to raise. `code`: without its "site." prefix."""
    return PydanticCustomError(f"site.{code}", "{message}", {"message": message, "remedy": remedy})


def note(value: object, info: ValidationInfo, code: str, message: str, remedy: str = "") -> None:
    """Adds a warning at the place of `value`, when it was read from a file."""
    if isinstance(info.context, Document) and isinstance(value, Text | Entries | Items):
        info.context.add(value.path, f"site.{code}", message, remedy, severity="warning")


def shown(value: object) -> str:
    """The value as it is named in a message: short, on one line."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return short(str(value))


def read_text(value: object) -> str:
    """Any scalar as text, as written: `1.8` stays "1.8"."""
    if isinstance(value, dict | list):
        raise invalid("type", f"text is expected, found {shown(value)}", "quote text that starts with { or [")
    if isinstance(value, Text) and value.vault:
        raise invalid("vault", "an ansible-vault string is accepted for secrets only", "write it in plain text")
    if value is None:
        raise invalid("empty-value", "has no value", "give it a value or remove the line")
    word = str(value).strip()
    if not word.isprintable():
        raise invalid("characters", "holds line ends or control characters", "write it on one line")
    return word


def read_word_boolean(value: object) -> bool:
    """Reads true/false with or without quotes, and yes/no/on/off as in YAML 1.1 (and so OpenPAI)."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if isinstance(value, dict | list) or word not in _TRUE | _FALSE:
        raise invalid("boolean", f"{shown(value)} is neither true nor false", "write true or false")
    return word in _TRUE


def read_boolean(value: object, info: ValidationInfo) -> bool:
    """As read_word_boolean, with a warning for words that other YAML readers take as text."""
    meaning = read_word_boolean(value)
    if str(value).strip().lower() not in {"true", "false"}:
        message = f"{shown(value)} is read as {str(meaning).lower()}"
        note(value, info, "boolean-word", message, "write true or false")
    return meaning


def read_strict_boolean(value: object, info: ValidationInfo) -> bool:
    """As read_boolean, for settings that OpenPAI silently dropped when they were quoted."""
    if isinstance(value, Text) and not value.plain:
        note(
            value,
            info,
            "quoted-boolean",
            f'"{shown(value)}" in quotes takes effect (OpenPAI ignored it)',
            f"write {str(value).strip().lower()} without quotes",
        )
    return read_boolean(value, info)


def read_whole(value: object) -> int:
    """Reads an integer. Refuses 010, because YAML versions read it differently."""
    # Python's booleans are integers, but true is no number.
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    word = str(value).strip()
    if isinstance(value, dict | list) or not _WHOLE.fullmatch(word):
        raise invalid("number", f"{shown(value)} is not a whole number", "write digits only")
    digits = word.lstrip("+-")
    if len(digits) > 1 and digits.startswith("0"):
        raise invalid("octal", f"{shown(word)} is read as octal by some programs", f"write {digits.lstrip('0') or 0}")
    return int(word)


def read_count(value: object) -> int:
    """A whole number from 1."""
    number = read_whole(value)
    if number < 1:
        raise invalid("count", f"{number} is too small. At least 1 is expected", "write how many there are")
    return number


def read_machine_count(value: object) -> int:
    """How many of something one machine has."""
    number = read_count(value)
    if number > MAX_COUNT:
        raise invalid("count", f"{number} is more than one machine has", "write how many one machine has")
    return number


def read_port(value: object) -> int:
    """A TCP port, 1 to 65535."""
    number = read_whole(value)
    if not 1 <= number <= 65535:
        raise invalid("port", f"{number} is not a port", "use a number from 1 to 65535")
    return number


def read_size(value: object) -> int:
    """How much of a disk: a Kubernetes quantity -> bytes."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    word, amount = _read_quantity(value, "a size")
    if amount < MIN_SIZE:
        number = word.rstrip("km")
        remedy = f"write {number}Gi" if number.isdigit() and int(number) else "for example 200Gi"
        raise invalid("quantity", f"{shown(word)} means {amount} bytes, and at least 1Gi is needed", remedy)
    if amount > MAX_SIZE:
        raise invalid("quantity", f"{shown(word)} is more than one machine has", "for example 200Gi")
    return amount


def _read_quantity(value: object, what: str) -> tuple[str, int]:
    """The word as written and its bytes."""
    if isinstance(value, dict | list):
        raise invalid("quantity", f"{what} is expected, found {shown(value)}", "for example 220Gi")
    word = str(value).strip()
    try:
        return word, parse_bytes(word)
    except QuantityError as error:
        raise invalid("quantity", str(error), error.remedy) from error


def read_memory(value: object, info: ValidationInfo) -> int:
    """A Kubernetes quantity -> bytes."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    word, amount = _read_quantity(value, "an amount of memory")
    if amount <= 0:
        raise invalid("quantity", f"{shown(word)} is no memory at all", "write what the machine has, e.g. 220Gi")
    if amount > MAX_MEMORY:
        raise invalid("quantity", f"{shown(word)} is more than one machine has", "write what it has, e.g. 220Gi")
    if amount < MIN_MEMORY:
        note(
            value,
            info,
            "quantity-unit",
            f"{shown(word)} means {amount} bytes",
            f"write {word.rstrip('km')}Gi for gibibytes",
        )
    elif word.isdigit():
        note(
            value,
            info,
            "quantity-unit",
            f"{shown(word)} means {amount} bytes",
            f"write {format_bytes(amount)}",
        )
    return amount


def plain_data(value: object) -> Any:  # noqa: ANN401 - any content
    """Converts Text, Entries, and Items to str, int, float, bool, dict, and list, for content that is passed on
    unchanged.

    Booleans follow YAML 1.1, as in OpenPAI and Kubernetes. Ambiguous numbers (010) stay text.
    """
    if isinstance(value, dict):
        return {str(key): plain_data(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_data(item) for item in value]
    if not isinstance(value, Text):
        return value
    return _plain_scalar(value) if value.plain else str(value)


def _plain_scalar(value: Text) -> str | int | float | bool:
    word = str(value)
    if word.lower() in _TRUE | _FALSE:
        return word.lower() in _TRUE
    # Up to 18 digits fit the 64 bits that other programs have for a number.
    if re.fullmatch(r"[+-]?(0|[1-9][0-9]{0,17})", word):
        return int(word)
    if re.fullmatch(r"[+-]?(0|[1-9][0-9]{0,17})\.[0-9]{1,18}", word):
        return float(word)
    return word
