"""Names of users, as their accounts have them. Pure."""

from __future__ import annotations

import re

# of a user's name, for Python and for CEL
NAME_PATTERN = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_NAME = re.compile(NAME_PATTERN)
# what a label may hold, as the name is one
MAX_NAME = 63


def why_no_name(name: str) -> str:
    """Returns the reason why a user cannot have the name, or ""."""
    if len(name) > MAX_NAME:
        return f"has {len(name)} characters, and a name {MAX_NAME} at most"
    return "" if _NAME.fullmatch(name) else "has more than lower-case letters, digits, and '-' between them"


def user_name(word: str) -> str:
    """The name of a user of OpenPAI as accounts have it, without '_', '.', and upper-case letters, as with groups."""
    return word.lower().replace("_", "-").replace(".", "-")


def near_name(name: str) -> str:
    """Returns the most similar name, or ""."""
    found = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_NAME].strip("-")
    return found if not why_no_name(found) else ""
