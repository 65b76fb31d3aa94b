"""On which machine a run's tasks were executed, by what Ansible wrote down: a report counts them for whom they were."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

# `ok: [gpu-09]`, `changed: [gpu-09 -> master(10.0.0.1)]`; an item of a loop has a line of its own, a skipped task none
# Ansible checks the arguments of a role, and conditions, on the controller host
_CHECK = re.compile(r"Validating arguments against arg spec|\bCheck the (?:token|answer of the control plane)\]")
_ENDED = re.compile(r"^(?:ok|changed|failed|fatal): \[(?P<host>[^\s\]]+)(?: -> (?P<where>[^\s(\]]+))?", re.MULTILINE)


def tasks_on(log: str) -> Counter[str]:
    """Machine -> how many tasks of a run were executed there, without checks on the controller host."""
    blocks = re.split(r"^TASK \[", log, flags=re.MULTILINE)
    work = "".join(block for block in blocks if not _CHECK.search(block.partition("\n")[0]))
    return tasks_elsewhere(work, "")


def tasks_elsewhere(log: str, newcomer: str) -> Counter[str]:
    """Machine -> how many tasks of a run were executed there; all machines but one. log: the text of ansible.log."""
    where = (found["where"] or found["host"] for found in _ENDED.finditer(log))
    return Counter(machine for machine in where if machine != newcomer)


def newest_log(site: Path) -> str:
    """What Ansible wrote in a site's newest run. Raises FileNotFoundError when it was not asked anything."""
    return log_of(max((site / ".pai" / "runs").iterdir()))


def log_of(run: Path) -> str:
    """What Ansible wrote in a run. Raises FileNotFoundError when it was not asked anything."""
    return (run / "ansible.log").read_text()
