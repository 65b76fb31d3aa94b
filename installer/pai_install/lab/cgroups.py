"""Control groups of the machines: one per machine in every hierarchy of the box, version 1, hybrid or 2."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# file -> what to write to let run, to freeze
_SWITCHES: Mapping[str, tuple[str, str]] = {"freezer.state": ("THAWED", "FROZEN"), "cgroup.freeze": ("0", "1")}


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted control group tree. unified: version 2. governs: it has the controllers."""

    path: Path
    unified: bool
    governs: bool = True


@dataclass(frozen=True, slots=True)
class MachineCgroups:
    """Control groups of a machine.

    folders: to create, parents first. keeper: cgroup.procs files for the process that restarts the machine. machine:
    those for nspawn. They differ on version 2 only, where a group with delegated controllers may not hold processes.
    passing: groups that delegate controllers.
    """

    folders: tuple[Path, ...]
    keeper: tuple[Path, ...]
    machine: tuple[Path, ...]
    passing: tuple[Path, ...] = ()

    @property
    def own(self) -> tuple[Path, ...]:
        """Groups that hold nothing but this machine."""
        return tuple(dict.fromkeys(procs.parent for procs in (*self.keeper, *self.machine)))


def hierarchies(mounts: str) -> tuple[Hierarchy, ...]:
    """Trees listed in the text of /proc/self/mounts."""
    rows = [line.split() for line in mounts.splitlines()]
    first = {row[1]: row[2] for row in rows if len(row) > 3 and row[2] in ("cgroup", "cgroup2")}
    has_v1 = "cgroup" in first.values()
    return tuple(
        Hierarchy(Path(path), kind == "cgroup2", kind == "cgroup" or not has_v1) for path, kind in first.items()
    )


def is_legacy(trees: Iterable[Hierarchy]) -> bool:
    """Whether version 1 holds the controllers."""
    return any(not tree.unified for tree in trees)


def lab_folders(trees: Iterable[Hierarchy], lab: str) -> tuple[Path, ...]:
    """The lab's own group in every tree."""
    return tuple(tree.path / f"pai-lab-{lab}" for tree in trees)


def machine_cgroups(trees: Iterable[Hierarchy], lab: str, machine: str) -> MachineCgroups:
    """Groups of one machine of one lab."""
    folders: list[Path] = []
    keeper: list[Path] = []
    inner: list[Path] = []
    passing: list[Path] = []
    for tree in trees:
        parent = tree.path / f"pai-lab-{lab}"
        own = parent / machine
        folders += [parent, own]
        inner.append(own / "cgroup.procs")
        if tree.unified and tree.governs:
            folders.append(parent / f"{machine}.keeper")
            keeper.append(folders[-1] / "cgroup.procs")
            passing += [tree.path, parent]
        else:
            keeper.append(own / "cgroup.procs")
    return MachineCgroups(tuple(folders), tuple(keeper), tuple(inner), tuple(passing))


def make(groups: MachineCgroups) -> None:
    """Makes the folders that are missing, with their parent's CPUs and, on version 2, its controllers."""
    for folder in groups.folders:
        folder.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            _inherit(folder / name, folder.parent / name)
    for folder in groups.passing:
        _pass_controllers_on(folder)


def _inherit(own: Path, parent: Path) -> None:
    # version 1 refuses processes in a cpuset without CPUs; version 2 needs nothing
    if own.exists() and not (own.parent / "cgroup.controllers").exists() and not own.read_text().strip():
        own.write_text(parent.read_text())


def _pass_controllers_on(folder: Path) -> None:
    control = folder / "cgroup.subtree_control"
    available = (folder / "cgroup.controllers").read_text().split()
    missing = set(available) - set(control.read_text().split())
    for controller in sorted(missing):
        with suppress(OSError):  # a controller that the box keeps for itself
            control.write_text(f"+{controller}")


def members(folder: Path) -> set[int]:
    """Process ids in a group and all groups below it."""
    found: set[int] = set()
    for below, _folders, _files in os.walk(folder):  # which passes over groups that go while we look
        with suppress(OSError):
            found |= {int(word) for word in (Path(below) / "cgroup.procs").read_text().split()}
    return found - {0}


def thaw(folder: Path) -> None:
    """Lets the processes of a group run again, if it was frozen."""
    freeze(folder, frozen=False)


def freeze(folder: Path, *, frozen: bool) -> bool:
    """Freezes or thaws all processes of a group and its subgroups. Returns False if this tree has no freezer."""
    for name, values in _SWITCHES.items():
        if (folder / name).exists():
            (folder / name).write_text(values[frozen])
            return True
    return False


def is_frozen(folder: Path) -> bool:
    """Whether the processes of a group are stopped."""
    return any(
        (folder / name).exists() and (folder / name).read_text().strip() != values[False]
        for name, values in _SWITCHES.items()
    )


def remove(folder: Path, *, timeout_s: float = 5.0) -> None:
    """Removes a group and those below it, waiting for processes that are being reaped. Raises OSError."""
    deadline = time.monotonic() + timeout_s
    while folder.is_dir():
        try:
            for path in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
                path.rmdir()
            folder.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
