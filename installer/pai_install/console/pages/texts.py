"""Texts of pages: one file per language, and the language of a request."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "texts"
# code -> its own name, which a person finds in any other language
LANGUAGES: Mapping[str, str] = {"en": "English", "zh": "中文"}
LANGUAGE_COOKIE = "__Host-pai-language"
_MOST_RANGES, _LONGEST = 20, 500


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of a language. A key has the name of its page before the first dot."""

    language: str
    entries: Mapping[str, str]

    def __call__(self, key: str, **values: object) -> str:
        """The text with values in place of its names. Raises KeyError for an unknown key."""
        return self.entries[key].format(**values) if values else self.entries[key]


@cache
def texts_of(language: str) -> Texts:
    """The texts of one of LANGUAGES."""
    content = tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
    return Texts(language, {f"{page}.{key}": text for page, texts in content.items() for key, text in texts.items()})


def language_of(accepted: str, usual: str) -> str:
    """The language of a browser. accepted: the header Accept-Language. usual: for a browser with none of ours."""
    found: list[tuple[float, str]] = []
    for part in accepted[:_LONGEST].split(",")[:_MOST_RANGES]:
        name, _, weight = part.partition(";")
        code = name.strip().lower().partition("-")[0]
        if code in LANGUAGES and (quality := _quality(weight)) > 0:
            found.append((quality, code))
    return max(found, key=lambda one: one[0])[1] if found else usual


def _quality(weight: str) -> float:
    """The weight of a language, 1 without one, and 0 for anything that is no number."""
    name, _, value = weight.strip().partition("=")
    if not name:
        return 1.0
    digits = value.strip()
    known = name.strip() == "q" and len(digits) <= 5 and digits.replace(".", "", 1).isdecimal() and digits.isascii()
    return float(digits) if known else 0.0
