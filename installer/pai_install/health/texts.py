"""Texts of the subcommands of `health`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from pai_install.health.act.cordon import Cordoning
from pai_install.health.memory.acknowledgement import Acknowledgement
from pai_install.health.memory.snapshot import Baseline, Snapshot


def history_text(snapshots: Iterable[Snapshot]) -> str:
    """Returns a line for each run, and one for each Xid below it."""
    return "".join(f"{line}\n" for snapshot in snapshots for line in _history(snapshot))


def _history(snapshot: Snapshot) -> Iterator[str]:
    verdicts = f"{_words('FAIL', snapshot.failed)} {_words('WARN', snapshot.warned)}"
    yield f"{_time(snapshot.time)}  boot {snapshot.boot_id[:8]}  {verdicts}"
    for incident in snapshot.incidents:
        boot = f" boot {incident.boot_id[:8]}" if incident.boot_id != snapshot.boot_id else ""
        yield f"    Xid {incident.xid} {incident.uuid} {_time(incident.time)}{boot}"


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


def _words(verdict: str, checks: Iterable[str]) -> str:
    names = ", ".join(checks)
    return f"{verdict} {names}" if names else f"no {verdict}"


def baselines_text(baselines: Mapping[str, Baseline]) -> str:
    """Returns a line for each GPU."""
    return "".join(f"{line}\n" for machine, item in sorted(baselines.items()) for line in _baseline(machine, item))


def _baseline(machine: str, baseline: Baseline) -> Iterator[str]:
    for bus_id, gpu in baseline.gpus.items():
        width = f"x{gpu.pcie_width:.0f}" if gpu.pcie_width is not None else "?"
        gen = f"gen {gpu.pcie_gen:.0f}" if gpu.pcie_gen is not None else "gen not judged"
        yield f"{machine} {bus_id}: PCIe {width} {gen}, {gpu.memory_mib or 0:.0f} MiB, NVLinks {gpu.nvlinks}"


def acknowledgements_text(rows: Sequence[Acknowledgement]) -> str:
    """Returns a line for each finding."""
    if not rows:
        return "no finding is acknowledged\n"
    return "".join(f"{f'{it.machine} {it.device}'.rstrip()} {it.check}: {it.words} ({it.said})\n" for it in rows)


def cordoning_lines(plan: Cordoning, share: float) -> Iterator[str]:
    """Yields what happens to each node. share: of nodes that may be cordoned."""
    for name, check in plan.cordon.items():
        yield f"cordoned {name}: {check}"
    for name in plan.release:
        yield f"uncordoned {name}: the machine has recovered"
    for name, why in plan.kept.items():
        yield f"still cordoned {name}: {why}"
    for name in plan.refused:
        yield f"not cordoned {name}: more than {share:.0%} of the nodes would be cordoned"
