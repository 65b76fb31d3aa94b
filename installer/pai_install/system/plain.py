"""Sanitises data of others for storage and display: machines and their programs. Pure.

Every text from a machine passes here once, where it enters, so later code needs no sanitising.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

DEEPEST = 60
TOO_DEEP = "(left out: nested too deeply)"
TOO_LARGE = "(left out: no number of ordinary size)"
_LARGEST = 1 << 63

# what changes the direction of text or is not seen
TURNING = "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"
# Controls but tab and line end, and halves of characters, which no file takes.
_HIDDEN = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{TURNING}\ud800-\udfff]")
_TURNING = re.compile(f"[{TURNING}]")


# what stands for such a character in JSON, of which an ASCII text holds no other than delete
_ESCAPE = re.compile(r"\\[ubfr]")


def plain_text(text: str) -> str:
    """The text with each character that steers a terminal, or hides or turns others, as its number: \\u001b."""
    text = text.replace("\r\n", "\n")
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text) if _HIDDEN.search(text) else text


def visible(text: str) -> str:
    """The text with each character that hides or turns others as its number. Controls stay: YAML refuses them."""
    return _TURNING.sub(lambda found: escaped(found[0]), text)


def escaped(letter: str) -> str:
    """The number of a character, as YAML writes it: \\u202e."""
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"


def one_line(text: str) -> str:
    """The same on one line, so that nothing in it looks like a line of ours."""
    return " ".join(plain_text(text).split())


def plain_json(text: str) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Returns plain(json.loads(text)). It looks for hidden characters once, not in each text. Raises ValueError."""
    value = json.loads(text)
    visible = text.isascii() and "\x7f" not in text and not _ESCAPE.search(text)
    return plain(value, clean=_as_it_is if visible else plain_text)


def _as_it_is(text: str) -> str:
    return text


def plain(value: Any, *, depth: int = 0, clean: Callable[[str], str] = plain_text) -> Any:  # noqa: ANN401 - as above
    """Returns plain data with safe texts and keys. Numbers beyond the range of other programs and deep nests become
    texts. clean: makes a text safe.
    """
    match value:
        case str():
            return clean(value)
        case int() | float():
            # NaN compares as false with every number, so it is left out as well.
            return value if -_LARGEST <= value < _LARGEST else TOO_LARGE
        case Mapping() | list() | tuple() if depth >= DEEPEST:
            return TOO_DEEP
        case Mapping():
            return {
                clean(str(key)): clean(entry) if type(entry) is str else plain(entry, depth=depth + 1, clean=clean)
                for key, entry in value.items()
            }
        case list() | tuple():
            return [plain(entry, depth=depth + 1, clean=clean) for entry in value]
        case _:
            return value
