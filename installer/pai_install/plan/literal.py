"""Literal values for Ansible: text of a site is never a template. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pai_install.errors import ExitCode, PaiError

# What can neither begin a template nor change what begins one ("#jinja2:"). All else is marked; marking these, too,
# would make the inventory of a thousand machines twice as long.
_PLAIN = re.compile(r"[A-Za-z0-9 _.,:;/@=+~%*-]*")
_UNSAFE = "__ansible_unsafe"
_RESERVED = "__ansible_"


def literal(value: Any) -> Any:  # noqa: ANN401 - any plain value
    """A plain value in the form that Ansible reads from JSON as exactly that value.

    Raises PaiError (site invalid) for a key that means something to Ansible's reader of JSON.
    """
    match value:
        case str():
            return value if _PLAIN.fullmatch(value) else {_UNSAFE: value}
        case Mapping():
            return {_key(key): literal(entry) for key, entry in value.items()}
        case list() | tuple():
            return [literal(entry) for entry in value]
        case _:
            return value


def _key(key: object) -> str:
    word = str(key)
    if word.startswith(_RESERVED):
        raise PaiError(
            f"cannot use the key {word[:60]!r}: Ansible reserves keys that begin with {_RESERVED}",
            code="site-key-reserved",
            remedy="remove it from config.yaml or layout.yaml",
            exit_code=ExitCode.SITE_INVALID,
        )
    return word
