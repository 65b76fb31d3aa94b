"""A pod of a job as the API server has it: which GPUs HiveD gave it, its processor time, and what is told of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

from gpu_use import steps
from gpu_use.steps import Steps

# the condition of a pod that says how busy it was. Only its node may write it, and administrators.
CONDITION, VERSION = "pai-install/use", 1
GROUPS = Path("/sys/fs/cgroup")
# below it: of control groups of version 2, and of version 1
_ROOTS = (".", "cpuacct")
# where HiveD says which GPUs a pod has, by their numbers; the API server lets no user write it
_HIVED = "hivedscheduler.microsoft.com/pod-leaf-cell-isolation"
_UID = re.compile(r"[0-9a-f-]{8,64}")
Json = Mapping[str, Any]


def child(value: Any, *path: str) -> Json:
    """The mapping at that path; empty where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def meta(pod: Json, name: str) -> str:
    """A word of its metadata."""
    value = child(pod, "metadata").get(name)
    return value if isinstance(value, str) else ""


def by_hived(pod: Json) -> list[str]:
    """The numbers of the GPUs that HiveD gave it."""
    given = child(pod, "metadata", "annotations").get(_HIVED)
    return [one.strip() for one in given.split(",") if one.strip()] if isinstance(given, str) else []


def is_over(pod: Json) -> bool:
    """Whether it has ended."""
    return child(pod, "status").get("phase") in ("Succeeded", "Failed")


def recalled(pod: Json) -> dict[str, Steps]:
    """What was told of it before: gpu and cpu, where that can be read."""
    rows = child(pod, "status").get("conditions")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and row.get("type") == CONDITION:
            return _read(row.get("message"))
    return {}


def _read(message: object) -> dict[str, Steps]:
    try:
        told = json.loads(message) if isinstance(message, str) else {}
    except ValueError:
        return {}
    if not isinstance(told, Mapping) or told.get("version") != VERSION:
        return {}
    found = {name: steps.read(told.get("at"), told.get(name)) for name in ("gpu", "cpu")}
    return {name: one for name, one in found.items() if one is not None}


def condition(gpu: Steps, cpu: Steps, gpus: int, moment: str) -> dict[str, str]:
    """What is told of a pod. moment: now, as Kubernetes writes times."""
    told = {"version": VERSION, "at": gpu.at, "gpus": gpus, "gpu": steps.plain(gpu), "cpu": steps.plain(cpu)}
    return {
        "type": CONDITION,
        "status": "True",
        "reason": "Measured",
        "message": json.dumps(told, separators=(",", ":")),
        "lastProbeTime": moment,
        "lastTransitionTime": moment,
    }


def processor_s(uid: str, groups: Path = GROUPS) -> Optional[float]:
    """Seconds of processor time that the pod has used; None where its control group does not say."""
    if not _UID.fullmatch(uid):
        return None
    flat = uid.replace("-", "_")
    for pattern in (f"kubepods.slice/**/kubepods*-pod{flat}.slice", f"kubepods/**/pod{uid}"):
        for folder in (found for root in _ROOTS for found in (groups / root).glob(pattern)):
            try:
                return _used_s(folder)
            except (OSError, ValueError, AttributeError):
                continue
    return None


def _used_s(folder: Path) -> float:
    """Raises OSError, ValueError, AttributeError where it does not say it."""
    if (older := folder / "cpuacct.usage").exists():
        return int(older.read_text()) / 1e9
    found = re.search(r"^usage_usec (\d+)$", (folder / "cpu.stat").read_text(), re.MULTILINE)
    return int(found.group(1)) / 1e6  # type: ignore[union-attr]
