"""The state of a machine before our first change, so that a removal restores it.

Origins exist only on machines that were first changed by a version with origins. Elsewhere the admin's state is
unknown, and a removal keeps everything that is not known to be ours.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Optional

from ansible.module_utils.pai_managed import ROLES_DIR, STATE_DIR

ORIGINS = STATE_DIR + "/origins.json"


def origins() -> Optional[dict[str, dict[str, Any]]]:
    """Returns topic -> name -> original state, or None without origins.

    packages: name -> version. files: path -> copy of the old file, empty if there was none. sysctl: name -> value.
    masked, stopped: unit -> True, for units that we changed.
    """
    try:
        with open(ORIGINS, encoding="utf-8") as handle:
            found = json.load(handle)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def may_begin() -> bool:
    """Whether the machine is as its admin left it: no notes, and no role of ours has run to its end."""
    return not os.path.exists(ORIGINS) and not (os.path.isdir(ROLES_DIR) and os.listdir(ROLES_DIR))


def begin(packages: dict[str, str]) -> None:
    """Starts the notes with the packages that are installed."""
    _write({"packages": packages, "files": {}, "sysctl": {}, "masked": {}, "stopped": {}})


def note(topic: str, name: str, value: Any) -> None:
    """Stores the original state on the first call. Does nothing without origins."""
    found = origins()
    # Only the first value is the administrator's. Later ones are our own.
    if found is not None and name not in found.setdefault(topic, {}):
        found[topic][name] = value
        _write(found)


def _write(value: dict[str, Any]) -> None:
    os.makedirs(STATE_DIR, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=STATE_DIR)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        json.dump(value, handle, indent=1, sort_keys=True)
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(temporary, ORIGINS)
