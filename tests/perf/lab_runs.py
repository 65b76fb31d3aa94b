"""What a run on a site's machines cost: the last full installation from its reports, and a run with nothing to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pai_install.plan.phases import PHASES
from pai_install.site import Site
from tests.perf.budgets import Measure

Report = Mapping[str, Any]
# without work where the site names no storage and no registry
OPTIONAL_PHASES = frozenset({"storage", "registries"})


def last_install(runs: Path) -> tuple[str, Report] | None:
    """The newest successful run of every phase that each site needs: its name and its report."""
    needed = {phase.name for phase in PHASES} - OPTIONAL_PHASES
    for path in sorted(runs.glob("*/report.json"), reverse=True):
        report = json.loads(path.read_text())
        ran = {phase["name"] for phase in report["phases"] if phase["hosts"]}
        if report["ok"] and needed <= ran:
            return path.parent.name, report
    return None


def install_measures(site: Site, name: str, report: Report, tasks: Mapping[str, int]) -> list[Measure]:
    """Wall time of an installation and the most tasks that a machine of each kind executed, changed and skipped.

    tasks: machine -> tasks that were executed there, without those on the controller host.
    """
    masters = [machine.hostname for machine in site.control_planes]
    workers = [host for host in report["hosts"] if host not in masters]
    phases = ", ".join(f"{phase['name']} {phase['duration_s']:.0f} s" for phase in report["phases"])
    changed = sum(counts["changed"] for counts in report["hosts"].values())
    found = [Measure("lab_install_wall", report["duration_s"], f"run {name}, {changed} tasks changed: {phases}")]
    most_on = max((tasks.get(worker, 0) for worker in workers), default=0)
    found.append(Measure("lab_install_tasks_on_worker", most_on, f"run {name}, the machine with the most"))
    for kind, hosts in (("worker", workers), ("control_plane", masters)):
        counts = [report["hosts"][host] for host in hosts if host in report["hosts"]]
        for what in ("tasks", "changed", "skipped") if counts else ():
            most = max(count[what] for count in counts)
            found.append(Measure(f"lab_install_{what}_per_{kind}", most, f"run {name}, the machine with the most"))
    return found


def no_op_measures(wall_s: float, cpu_s: float, report: Report) -> list[Measure]:
    """What a second `apply` cost: the whole process, the most tasks of any machine, changes on all of them."""
    counts = report["hosts"].values()
    return [
        Measure("lab_no_op_wall", wall_s, f"{len(counts)} machines"),
        Measure("lab_no_op_cpu", cpu_s, "of the controller host"),
        Measure("lab_no_op_tasks_per_machine", max((count["tasks"] for count in counts), default=0)),
        Measure("lab_no_op_changed", sum(count["changed"] for count in counts)),
    ]


def join_measures(
    wall_s: float, plan: Report, report: Report, newcomer: str, tasks: Mapping[str, int]
) -> list[Measure]:
    """What one more machine cost: wall time of its `node add`; planned steps and changed tasks on all the others.

    The proof at the end is no such step: it looks, and changes nothing.
    tasks: machine -> what was executed there; the control plane signs, labels and proves.
    """
    elsewhere = {host: count for host, count in tasks.items() if host != newcomer}
    phases = [phase for phase in plan["phases"] if phase["name"] not in ("verify", "health")]
    steps = [step["host"] for phase in phases for step in phase["hosts"] if step["host"] != newcomer]
    changed = {host: counts["changed"] for host, counts in report["hosts"].items() if host != newcomer}
    return [
        Measure("lab_join_wall", wall_s),
        Measure("lab_join_tasks", tasks.get(newcomer, 0)),
        Measure("lab_join_steps_elsewhere", len(steps), ", ".join(sorted(set(steps)))),
        Measure("lab_join_changed_elsewhere", sum(changed.values())),
        Measure(
            "lab_join_tasks_elsewhere",
            sum(elsewhere.values()),
            ", ".join(f"{count} on {host}" for host, count in elsewhere.items()),
        ),
    ]
