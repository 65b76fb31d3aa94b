"""The difference that an edit makes, as it may be shown: without a secret. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from itertools import chain

from pydantic import SecretStr

from pai_install.documents.document import Document
from pai_install.documents.parse import parse_document
from pai_install.documents.scalars import plain_data
from pai_install.errors import PaiError
from pai_install.redact import MASK, Redactor, secret_values
from pai_install.site.services.model import Services
from pai_install.site_edit.spans import read_spans


def difference(name: str, before: str, after: str, services: Collection[Services]) -> str:
    """Returns a unified diff of a services-configuration.yaml, or "".

    services: the parsed texts, for masking of their secrets.
    """
    secrets = {secret for one in services for secret in _secrets(one.model_dump())}
    secrets |= _named_secrets(before) | _named_secrets(after)
    old, new = (_masked(text, secrets).splitlines() for text in (before, after))
    lines = list(difflib.unified_diff(old, new, name, name, lineterm=""))
    return "".join(f"{line}\n" for line in lines)


def _secrets(value: object) -> Iterator[str]:
    if isinstance(value, SecretStr):
        try:
            yield from filter(None, [value.get_secret_value()])
        except PaiError:
            return  # it is unavailable, so it is not in the file
    elif isinstance(value, dict):
        yield from chain.from_iterable(map(_secrets, value.values()))
    elif isinstance(value, list | tuple):
        yield from chain.from_iterable(map(_secrets, value))


def _named_secrets(text: str) -> frozenset[str]:
    """Returns values of keys with a secret's name, including sections that are kept unparsed."""
    document = Document("")
    parse_document(text, document)
    return secret_values(_underscored(plain_data(document.content)))


def _underscored(value: object) -> object:
    """Returns the value with keys in the form of variables, which the search for secrets needs."""
    if isinstance(value, dict):
        return {str(key).replace("-", "_"): _underscored(one) for key, one in value.items()}
    return [_underscored(one) for one in value] if isinstance(value, list) else value


def _masked(text: str, secrets: Collection[str]) -> str:
    """By place first: a quoted secret is not written as it reads."""
    root = read_spans(text.removeprefix("\ufeff")) if text.strip() else None
    made = text.removeprefix("\ufeff")
    for span in sorted(root.scalars() if root else (), key=lambda one: -one.start):
        if span.value.strip() and span.value.strip() in secrets:
            made = made[: span.start] + MASK + made[span.end :]
    return Redactor(secrets).text(made)
