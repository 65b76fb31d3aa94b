"""Pods of jobs on this node: GPUs that HiveD assigned, and processor time."""

from __future__ import annotations

import re
from pathlib import Path

from pai_install.agents.common.values import Json, child, text

GROUPS = Path("/sys/fs/cgroup")
# below it: control groups of version 2 and of version 1
_ROOTS = (".", "cpuacct")
# HiveD writes the indexes of a pod's GPUs here; the API server lets no user write it
_HIVED, _MAX_ANNOTATION = "hivedscheduler.microsoft.com/pod-leaf-cell-isolation", 1000
_UID = re.compile(r"[0-9a-f-]{8,64}")


def hived_gpus(pod: Json) -> list[str]:
    """The indexes of the GPUs that HiveD assigned to it."""
    indexes = text(child(pod, "metadata", "annotations").get(_HIVED))[:_MAX_ANNOTATION].split(",")
    return [index.strip() for index in indexes if index.strip()]


def is_over(pod: Json) -> bool:
    """Whether it has ended."""
    return child(pod, "status").get("phase") in ("Succeeded", "Failed")


def processor_s(uid: str, groups: Path = GROUPS) -> float | None:
    """Returns the seconds of processor time that the pod has used, or None without its control group."""
    if not _UID.fullmatch(uid):
        return None
    # A dash in the name of a slice means a level of the hierarchy, so the kubelet writes underscores.
    flat = uid.replace("-", "_")
    for pattern in (f"kubepods.slice/**/kubepods*-pod{flat}.slice", f"kubepods/**/pod{uid}"):
        for folder in (found for root in _ROOTS for found in (groups / root).glob(pattern)):
            try:
                return _used_s(folder)
            except (OSError, ValueError, AttributeError):
                continue
    return None


def _used_s(folder: Path) -> float:
    """Raises OSError, ValueError, or AttributeError for an unreadable control group."""
    if (older := folder / "cpuacct.usage").exists():
        return int(older.read_text()) / 1e9
    found = re.search(r"^usage_usec (\d+)$", (folder / "cpu.stat").read_text(), re.MULTILINE)
    return int(found.group(1)) / 1e6  # type: ignore[union-attr]
