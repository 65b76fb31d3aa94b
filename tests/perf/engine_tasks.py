"""On which machine a run's tasks were executed, by what Ansible wrote down: a report counts them for whom they were."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

# `ok: [gpu-09]`, `changed: [gpu-09 -> master(10.0.0.1)]`; an item of a loop has a line of its own, a skipped task none
_ENDED = re.compile(r"^(?:ok|changed|failed|fatal): \[(?P<host>[^\s\]]+)(?: -> (?P<where>[^\s(\]]+))?", re.MULTILINE)


def tasks_elsewhere(log: str, newcomer: str) -> Counter[str]:
    """Machine -> how many tasks of a run were executed there; all machines but one. log: the text of ansible.log."""
    where = (found["where"] or found["host"] for found in _ENDED.finditer(log))
    return Counter(machine for machine in where if machine != newcomer)


def newest_log(site: Path) -> str:
    """What Ansible wrote in a site's newest run. Raises FileNotFoundError when it was not asked anything."""
    newest = max((site / ".pai" / "runs").iterdir())
    return (newest / "ansible.log").read_text()
