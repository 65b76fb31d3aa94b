"""What a machine had before the first change of ours: so that what is taken away later gives back what was there.

Notes are kept only on machines that were first changed by a version that keeps them: of others it is not known what
was the admin's, and what is not known to be ours stays.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Optional

from ansible.module_utils.pai_managed import ROLES_DIR, STATE_DIR

ORIGINS = STATE_DIR + "/origins.json"


def origins() -> Optional[dict[str, dict[str, Any]]]:
    """Topic -> name -> what there was; None where no notes are kept.

    packages: name -> version. files: path -> copy of the old file, empty where there was none. sysctl: name -> value.
    masked, stopped: unit -> True, of those that were so by us.
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
    """Keeps what there was, the first time; does nothing where no notes are kept."""
    found = origins()
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
