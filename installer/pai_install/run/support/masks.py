"""Masks secrets in data that leaves the controller host: the site's secrets, and similar texts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pai_install.redact import MASK, Redactor, secret_values

# What a secret looks like, wherever it stands; the group `keep` stays.
_SHAPES = (
    re.compile(r"(?P<keep>-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|\Z)", re.DOTALL),
    re.compile(r"(?P<keep>\b(?:Bearer|Basic)\s+)[A-Za-z0-9+/=._~-]{8,}"),
    re.compile(r"(?P<keep>)\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    re.compile(r"(?P<keep>)\b[a-z0-9]{6}\.[a-z0-9]{16}\b"),
    re.compile(r"(?P<keep>://[^/\s:@]+:)[^/\s@]+(?=@)"),
    re.compile(
        r"(?P<keep>(?:password|passwd|secret|token|api_?key|access_?key|client-key-data|auth)[\"']?\s*[:=]\s*[\"']?)"
        r"(?!\s|[\"'{\[]|null\b|true\b|false\b)[^\s\"',;}]{4,}",
        re.IGNORECASE,
    ),
)


class Masks:
    """Masks text. known: plain data with named secrets, such as the site's files."""

    def __init__(self, known: Iterable[object]) -> None:
        self._redactor = Redactor({value for data in known for value in secret_values(data)})

    def text(self, text: str) -> str:
        """`text` without secrets."""
        found = self._redactor.text(text)
        for shape in _SHAPES:
            found = shape.sub(lambda match: match["keep"] + MASK, found)
        return found
