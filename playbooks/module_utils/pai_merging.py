"""JSON files with several writers: the admin, programs, and our roles.

The machine stores the merged patch of each owner. So a later call removes exactly this patch, and drift detection
covers only our keys.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
from collections.abc import Iterable
from typing import Any

# what was merged may be a login: for root alone
MERGED_DIR = "/var/lib/pai-install/merged"
EMPTY: tuple[Any, ...] = ([], {})


def merge(base: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """`base` with `patch` in it: objects merged, lists united, other values replaced."""
    merged = dict(base)
    for key, value in patch.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[key] = merge(old, value)
        elif isinstance(old, list) and isinstance(value, list):
            # A list of name=value words has each name once: Docker refuses two cgroup drivers in exec-opts.
            named = {_name(word) for word in value} - {None}
            merged[key] = [word for word in old if word not in value and _name(word) not in named] + value
            if all(word in old for word in value) and len(merged[key]) == len(old):
                merged[key] = old  # the same words: the admin's order stays
        else:
            merged[key] = value
    return merged


def subtract(base: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Returns `base` without `patch`. Values that changed since the merge stay."""
    left = {}
    for key, value in base.items():
        if key not in patch:
            left[key] = value
        elif isinstance(value, dict) and isinstance(patch[key], dict):
            # An object that only we filled goes as a whole.
            rest = subtract(value, patch[key])
            if rest:
                left[key] = rest
        elif isinstance(value, list) and isinstance(patch[key], list):
            rest_words = [word for word in value if word not in patch[key]]
            if rest_words:
                left[key] = rest_words
        elif value != patch[key]:
            left[key] = value
    return left


def _name(word: Any) -> Any:
    """The name in a `name=value` word, else None."""
    return word.split("=", 1)[0] if isinstance(word, str) and "=" in word else None


def merged(path: str, owner: str, current: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Returns `current`, the object in a file, with `patch` and without obsolete keys of the owner's last patch.

    Keys of other owners stay. An empty list or object adds no key, but keeps an existing key as empty: a daemon ignores
    the removal of a key on reload.
    """
    gone = subtract(kept_patch(path, owner), patch)
    # Two roles write into daemon.json, and a key of one must not go with the other's.
    for other in _patches_of_others(path, owner):
        gone = subtract(gone, other)
    wanted = merge(subtract(current, gone), patch)
    return {key: value for key, value in wanted.items() if value not in EMPTY or key in current}


def merged_text(path: str, owner: str, old: str | None, patch: dict[str, Any]) -> str:
    """Returns the text of the file with `patch` merged, unchanged if it already contains the patch.

    Raises ValueError if the file is not a JSON object.
    """
    current = json.loads(old) if old and old.strip() else {}
    if not isinstance(current, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - as for text that is no JSON
    wanted = merged(path, owner, current, patch)
    # The same text again: a new format of the file alone would restart Docker.
    if old and wanted == current:
        return old
    # a diff shows what changes, and no line that only moved or was indented in another way
    text = json.dumps(in_order_of(current, wanted), indent=indentation(old or ""), ensure_ascii=False)
    return text + "\n"


def in_order_of(model: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """`value` with the keys that `model` has in its order, and the others after them."""
    keys = [*(key for key in model if key in value), *(key for key in value if key not in model)]
    pairs = ((key, value[key], model.get(key)) for key in keys)
    return {
        key: in_order_of(old, new) if isinstance(old, dict) and isinstance(new, dict) else new
        for key, new, old in pairs
    }


def indentation(text: str) -> str:
    """Returns the indentation of the first key of a JSON text, by default four spaces."""
    found = re.search(r'^([ \t]+)"', text, re.MULTILINE)
    return found.group(1) if found else "    "


def merged_problem(item: dict[str, Any]) -> str:
    """Returns a sentence if the patch of an owner is missing from a file, or "".

    item: path, owner, sha256 (see digest_of_rest, empty: ignored), live_keys.
    """
    current = read_object(item["path"])
    if current is None:
        return f"{item['path']} is no JSON object"
    keys = item["live_keys"]
    patch = kept_patch(item["path"], item["owner"])
    # An empty list never stays in a file that had none, so it cannot be missed.
    wanted = {key: value for key, value in patch.items() if value not in EMPTY and (key in keys or not item["sha256"])}
    same = not item["sha256"] or digest_of_rest(current, keys) == item["sha256"]
    return "" if same and merge(current, wanted) == current else f"{item['path']} was changed by hand"


def digest_of_rest(value: dict[str, Any], live_keys: Iterable[str]) -> str:
    """Returns a digest of an object without live_keys. Key order and file format do not change it."""
    rest = {key: entry for key, entry in value.items() if key not in live_keys}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_object(path: str) -> dict[str, Any] | None:
    """Returns the JSON object in a file, or None."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            found = json.load(handle)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def patch_path(path: str, owner: str = "") -> str:
    """Where the patch that an owner last merged into a file is kept."""
    name = hashlib.sha256(path.encode()).hexdigest()[:16]
    return os.path.join(MERGED_DIR, f"{name}.{owner}.json" if owner else f"{name}.json")


def kept_patch(path: str, owner: str) -> dict[str, Any]:
    """Returns the last patch of an owner, or {} if unknown."""
    return read_object(patch_path(path, owner)) or {}


def keep_patch(path: str, owner: str, patch: dict[str, Any]) -> None:
    """Stores the merged patch, so that a later run can remove it."""
    os.makedirs(MERGED_DIR, mode=0o700, exist_ok=True)
    temporary = patch_path(path, owner) + ".new"
    with open(temporary, "w", encoding="utf-8") as handle:
        json.dump(patch, handle)
    # A patch may hold a login at a registry.
    os.chmod(temporary, 0o600)
    os.replace(temporary, patch_path(path, owner))


def _patches_of_others(path: str, owner: str) -> list[dict[str, Any]]:
    own = patch_path(path, owner)
    paths = glob.glob(glob.escape(patch_path(path)[: -len(".json")]) + "*.json")
    return [read_object(found) or {} for found in sorted(paths) if found != own]
