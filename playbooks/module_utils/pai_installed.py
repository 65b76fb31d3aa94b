"""Versions of the installed components of this machine, from the files of our roles."""

from __future__ import annotations

import json
from typing import Any

from ansible.module_utils.pai_managed import ROLES_DIR, STATE_DIR


def programs(path: str = STATE_DIR + "/artifacts.json") -> dict[str, str]:
    """Name of a program -> its version, by the ledger of pai_artifacts."""
    entries = _read(path)
    found = {}
    for key, entry in entries.items():
        version = entry.get("version") if isinstance(entry, dict) else None
        if isinstance(version, str) and version:
            found[key.partition(" ")[0]] = version
    return found


def images(path: str = ROLES_DIR + "/system_images.json") -> dict[str, str]:
    """Returns image name without registry -> tag, for images of the role system_images."""
    managed = _read(path).get("managed")
    found = {}
    for item in managed if isinstance(managed, list) else []:
        name = str(item.get("name", "")) if isinstance(item, dict) and item.get("kind") == "image" else ""
        repository, _, tag = name.rpartition("/")[2].partition(":")
        # A reference with a digest says nothing of a version.
        if tag and "@" not in name:
            found[repository] = tag
    return found


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as handle:
            found = json.load(handle)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
