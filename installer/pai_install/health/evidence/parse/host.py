"""Host texts -> plain values: units, mounts, memory, clock, container runtimes, processes, disks, Kubernetes nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pai_install.agents.common.values import InvalidJsonError, parse_object
from pai_install.health.evidence.parse.numbers import whole
from pai_install.kube.model import Node

# bytes of a program's output
_MAX_OUTPUT = 16 << 20
# Seconds. ps reads the clock before the processes, and its age of a process that starts after that is negative.
# It prints it without a sign: 4123168608 in procps 4.0.2, 4294967295 in later ones where ps takes over a second.
_NEGATIVE_AGE = 1 << 31


@dataclass(frozen=True, slots=True)
class Unit:
    """One systemd unit. loaded: whether it exists."""

    name: str
    loaded: bool
    active: str
    restarts: int


def parse_units(text: str) -> dict[str, Unit]:
    """Name without .service -> unit, of `systemctl show -p Id,...` for several units."""
    found = {}
    for block in re.split(r"\n\s*\n", text.strip()):
        values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        name = values.get("Id", "").removesuffix(".service")
        if name:
            found[name] = Unit(
                name,
                values.get("LoadState") == "loaded",
                values.get("ActiveState", ""),
                whole(values.get("NRestarts", "")) or 0,
            )
    return found


def parse_meminfo(text: str) -> dict[str, int]:
    """Name -> bytes."""
    return {
        match.group(1): int(match.group(2)) * (1024 if match.group(3) else 1)
        for match in re.finditer(r"^(\S+):\s+(\d{1,18})\b( kB)?", text, re.MULTILINE)
    }


def parse_swaps(text: str) -> tuple[str, ...]:
    """The active swap areas of /proc/swaps."""
    return tuple(line.split()[0] for line in text.splitlines()[1:] if line.strip())


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of /proc/mounts."""

    device: str
    path: str
    filesystem: str
    read_only: bool
    options: tuple[str, ...] = ()


def parse_mounts(text: str) -> tuple[Mount, ...]:
    """Every mount."""
    rows = (line.split() for line in text.splitlines())
    cut = [(row, tuple(row[3].split(","))) for row in rows if len(row) >= 4]
    return tuple(Mount(row[0], row[1], row[2], "ro" in options, options) for row, options in cut)


def parse_modules(text: str) -> frozenset[str]:
    """Names of the loaded kernel modules (/proc/modules)."""
    return frozenset(line.split()[0] for line in text.splitlines() if line.strip())


@dataclass(frozen=True, slots=True)
class Tracking:
    """`chronyc -c tracking`. offset, root_delay, root_dispersion: seconds. age: seconds since the last measurement."""

    reference: str
    stratum: int
    reference_time: float
    offset: float
    root_delay: float
    root_dispersion: float
    interval: float
    leap: str

    @property
    def root_distance(self) -> float:
        """How far the clock may be from the reference at worst."""
        return self.root_delay / 2 + self.root_dispersion


def parse_tracking(text: str) -> Tracking | None:
    """Returns None if the line is no output of chrony."""
    cells = text.strip().split(",")
    if len(cells) < 14:
        return None
    try:
        return Tracking(
            cells[0],
            int(cells[2]),
            float(cells[3]),
            float(cells[4]),
            float(cells[10]),
            float(cells[11]),
            float(cells[12]),
            cells[13].strip(),
        )
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class ProcessLine:
    """One process of `ps axo pid,stat,ppid,etimes,wchan,comm`. seconds: its age."""

    pid: str
    state: str
    seconds: int
    wchan: str
    command: str
    parent: str = ""


def parse_ps(text: str) -> tuple[ProcessLine, ...]:
    """Returns all processes and skips malformed lines."""
    found = []
    for line in text.splitlines():
        cells = line.split(None, 5)
        age = whole(cells[3]) if len(cells) == 6 and cells[0].isdecimal() else None
        if age is not None:
            seconds = age if age < _NEGATIVE_AGE else 0
            found.append(ProcessLine(cells[0], cells[1], seconds, cells[4], cells[5], cells[2]))
    return tuple(found)


def parse_json_object(text: str) -> Mapping[str, Any]:
    """The object in a text, {} when it is none."""
    try:
        return parse_object(text, max_size=_MAX_OUTPUT)
    except InvalidJsonError:
        return {}


def parse_kubernetes_nodes(text: str) -> dict[str, Node]:
    """Name -> node of the collector's `kubectl get nodes`: tab-separated lines."""
    rows = (line.split("\t") for line in text.splitlines())
    return {row[0]: _node(*row) for row in rows if len(row) == 5 and row[0]}


def _node(name: str, cordoned: str, capacity: str, allocatable: str, ready: str) -> Node:
    """A row as the object that the API has, for the one parser of it."""
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    amounts = {"capacity": parse_json_object(capacity), "allocatable": parse_json_object(allocatable)}
    spec = {"unschedulable": cordoned == "true"}
    return Node.parse({"metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions, **amounts}})
