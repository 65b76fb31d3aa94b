"""The secrets of a job file, masked before the file is kept with its job. Pure."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, MutableMapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

MASK = "******"
_LOGIN = ("password", "username")
# a file without these words has no secrets
_SECRET = re.compile(r"\bsecrets\b|\bauth\b|\bSecret\b")


def masked(content: str) -> str:
    """The file without the values of its secrets. A file without secrets stays as it is."""
    if not _SECRET.search(content):
        return content
    # This reader keeps comments and the order of keys, so that users know their file again.
    reader = YAML(typ="rt")
    reader.preserve_quotes = True
    reader.width = 4096
    try:
        documents = list(reader.load_all(content))
        if not sum(_mask(one) for one in documents):
            return content
        output = io.StringIO()
        reader.dump_all(documents, output)
    except (YAMLError, RecursionError, ValueError):
        # OpenPAI's protocol 1 permits escapes that are not YAML. It has no secrets.
        return "" if _SECRET.search(content) else content
    return output.getvalue()


def has_mask(content: str) -> bool:
    """Whether a kept file lacks its secrets, so that it cannot be submitted again."""
    return MASK in content


def _mask(document: object) -> int:
    """Masks the secrets of a document in place. Returns their number."""
    if not isinstance(document, MutableMapping):
        return 0
    if document.get("kind") == "Secret":
        return sum(_mask_values(document.get(key)) for key in ("data", "stringData"))
    found = _mask_values(document.get("secrets"))
    prerequisites = document.get("prerequisites")
    for one in prerequisites if isinstance(prerequisites, list) else ():
        auth = one.get("auth") if isinstance(one, Mapping) else None
        if isinstance(auth, MutableMapping):
            found += sum(_mask_login(auth, key) for key in _LOGIN)
    return found


def _mask_login(auth: MutableMapping[str, Any], key: str) -> int:
    """A reference such as <% $secrets.NAME %> is no secret itself."""
    value = auth.get(key)
    if value is None or (isinstance(value, str) and "$secrets" in value):
        return 0
    auth[key] = MASK
    return 1


def _mask_values(entries: object) -> int:
    if not isinstance(entries, MutableMapping):
        return 0
    for key in entries:
        entries[key] = MASK
    return len(entries)
