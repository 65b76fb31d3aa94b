"""When a service refuses its new configuration: the old files come back, and its own words are told."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from ansible.module_utils.basic import AnsibleModule

LINES = 25


def roll_back(copies: Mapping[str, str]) -> list[str]:
    """Restores files from their copies and returns the sorted paths. An empty copy deletes the file."""
    for path, copy in copies.items():
        if copy:
            shutil.copy2(copy, path)
        # A new file may be the cause of the failure, so it goes.
        elif os.path.exists(path):
            os.unlink(path)
    return sorted(copies)


def last_log_lines(module: AnsibleModule, unit: str) -> list[str]:
    """The unit's last log lines."""
    words = ["journalctl", "--unit", unit, "--no-pager", "--lines", str(LINES), "--output", "cat"]
    return module.run_command(words)[1].splitlines()[-LINES:]
