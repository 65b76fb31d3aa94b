"""Keeps secret values out of everything that is written or shown."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

MASK = "********"

# Names of variables and options whose text values are secrets.
_SECRET_NAME = re.compile(
    r"(password|passwd|passphrase|htpasswd|secret|token|private_?key|encryption_?key"
    r"|access_?key|api_?key|_pass$|^pass$|auth_?data)",
    re.IGNORECASE,
)
# Names that look like the above and hold a path, a switch, a name, or where Kubernetes keeps a secret.
_PLAIN_NAME = re.compile(
    r"(_file|_path|_dir|_folder|_name|_namespace|_from|_ttl|_hours|_mode|_enabled|secret_?refs?|^imagepullsecrets)$",
    re.IGNORECASE,
)
_SHORT = 4  # a value below this length is only replaced as a whole word


class Redactor:
    """Replaces known secret values in text and in nested data.

    Covers the value itself, its JSON-escaped and base64 forms, and each long line of a value with lines
    (a private key is printed line by line).
    """

    def __init__(self, values: Iterable[str]) -> None:
        self._values = frozenset(values)
        self._pattern = _pattern(self._values)
        self._key = lru_cache(maxsize=4096)(self.text)

    def also(self, values: Iterable[str]) -> Redactor:
        """Returns a redactor that also masks these values, or this one if it masks them already."""
        more = self._values.union(values)
        return self if more == self._values else Redactor(more)

    def text(self, text: str) -> str:
        """`text` with every secret replaced by the mask."""
        return self._pattern.sub(MASK, text) if self._pattern else text

    def mapping(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The same for every string inside nested mappings and lists, their keys included."""
        return {self._key(str(key)): self._value(value) for key, value in data.items()}

    def _value(self, value: object) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self.mapping(value)
        if isinstance(value, (list, tuple)):
            return [self._value(item) for item in value]
        return value


def secret_values(data: object) -> frozenset[str]:
    """Returns every text value in nested `data` with a secret's name as its own key or as the key of an
    outer mapping.
    """
    return frozenset(value for value in _secrets(data, inside=False) if value)


def _secrets(data: object, *, inside: bool) -> Iterator[str]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _secrets(value, inside=_names_secret(str(key), inside=inside))
    elif isinstance(data, (list, tuple)):
        for item in data:
            yield from _secrets(item, inside=inside)
    elif inside and isinstance(data, str):
        yield data


@lru_cache(maxsize=4096)  # a thousand machines have the same variables
def _names_secret(key: str, *, inside: bool) -> bool:
    if _PLAIN_NAME.search(key.replace("-", "_")):
        return False
    return inside or bool(_SECRET_NAME.search(key.replace("-", "_")))


def _pattern(values: Iterable[str]) -> re.Pattern[str] | None:
    forms = {form for value in values if value.strip() for form in _forms(value)}
    if not forms:
        return None
    # longest first: a secret that contains another one is replaced whole
    return re.compile("|".join(_as_regex(form) for form in sorted(forms, key=lambda form: (-len(form), form))))


def _forms(value: str) -> Iterator[str]:
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    if len(value) >= _SHORT:
        yield base64.b64encode(value.encode()).decode()
    lines = value.splitlines()
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= 16 and not line.startswith("-----"))


def _as_regex(form: str) -> str:
    return re.escape(form) if len(form) >= _SHORT else rf"(?<!\w){re.escape(form)}(?!\w)"
