"""What is measured, in which unit, and how much it may be; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Budget:
    """A unit and a bound; `limit` is None where a number is only told. at_least: the bound is the lowest good value."""

    unit: str
    limit: float | None = None
    at_least: bool = False

    def holds(self, value: float) -> bool | None:
        """Whether `value` is within the bound; None without one."""
        if self.limit is None:
            return None
        return value >= self.limit if self.at_least else value <= self.limit

    def missed_by(self, value: float) -> float:
        """How far `value` is beyond the bound, in the budget's unit; 0 within it."""
        return 0 if self.limit is None or self.holds(value) else abs(value - self.limit)


BUDGETS: Mapping[str, Budget] = {
    "help_wall": Budget("s", 0.2),
    "help_cpu": Budget("s"),
    "help_with_bootstrap_wall": Budget("s"),
    "validate_1000_wall": Budget("s", 2),
    "validate_1000_cpu": Budget("s"),
    "validate_1000_memory": Budget("MiB"),
    "plan_10_cpu": Budget("s"),
    "plan_100_cpu": Budget("s"),
    "plan_1000_wall": Budget("s", 5),
    "plan_1000_cpu": Budget("s"),
    "plan_1000_first_cpu": Budget("s", 1),
    "plan_1000_memory": Budget("MiB", 300),
    "plan_one_more_steps_elsewhere": Budget("steps", 0),
    "node_add_1000_asks_elsewhere": Budget("machines", 3),
    "inventory_1000_size": Budget("MiB"),
    "saved_plan_1000_size": Budget("MiB"),
    "no_op_10_wall": Budget("s"),
    "no_op_10_cpu": Budget("s"),
    "no_op_10_memory": Budget("MiB"),
    "no_op_100_wall": Budget("s"),
    "no_op_100_cpu": Budget("s"),
    "no_op_100_memory": Budget("MiB"),
    "no_op_1000_wall": Budget("s", 180),
    "no_op_1000_cpu": Budget("s"),
    "no_op_1000_memory": Budget("MiB", 1024),
    "module_lines_median": Budget("lines", 110),  # "about 100"
    "module_lines_longest": Budget("lines", 400),
    "function_lines_median": Budget("lines", 10),
    "function_lines_longest": Budget("lines", 60),
    "test_to_source_lines": Budget("ratio", 1.2, at_least=True),
    "lab_no_op_wall": Budget("s", 2.5),
    "lab_no_op_cpu": Budget("s", 1.2),
    "lab_no_op_tasks_per_machine": Budget("tasks", 1),
    "lab_no_op_changed": Budget("tasks", 0),
    "lab_status_wall": Budget("s", 2),
    "lab_status_cpu": Budget("s"),
    "lab_list_wall": Budget("s", 1),
    "lab_list_cpu": Budget("s", 0.5),
    "lab_join_wall": Budget("s", 50),
    "lab_join_tasks": Budget("tasks", 30),
    "lab_join_steps_elsewhere": Budget("steps", 0),
    "lab_join_changed_elsewhere": Budget("tasks", 0),
    # 20 at a site with 3 control planes, of which each is observed and probed; the lab has one
    "lab_join_tasks_elsewhere": Budget("tasks", 16),
    "lab_install_wall": Budget("s", 90),
    # without those that Ansible runs on the controller host
    "lab_install_tasks_on_worker": Budget("tasks", 30),
    "lab_install_tasks_per_worker": Budget("tasks"),
    "lab_install_changed_per_worker": Budget("tasks"),
    "lab_install_skipped_per_worker": Budget("tasks"),
    "lab_install_tasks_per_control_plane": Budget("tasks"),
    "lab_install_changed_per_control_plane": Budget("tasks"),
    "lab_install_skipped_per_control_plane": Budget("tasks"),
    "registry_pull_upstream_wall": Budget("s"),
    "registry_pull_cold_cache_wall": Budget("s"),
    "registry_pull_cache_wall": Budget("s"),
    "registry_cache_throughput": Budget("MiB/s"),
    "registry_disk_throughput": Budget("MiB/s"),
}


# counts of other installers' own sources, which cannot install here: docs/performance.md
COMPARISON: Mapping[str, Mapping[str, str | int]] = {
    "kubespray": {
        "commit": "46dbdd399",
        "tasks": 715,
        "tasks_for_a_worker": 419,
        "tasks_for_a_worker_without_changes": 419,
    },
    "k0sctl": {"commit": "f4005b6", "phases": 30},
    "pai-install": {"tasks": 144, "tasks_for_a_worker": 80, "tasks_for_a_worker_without_changes": 1},
}


@dataclass(frozen=True, slots=True)
class Measure:
    """One measured number. note: what has to be known to read it, e.g. which run it is from."""

    name: str
    value: float
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """{name, value, unit, budget, within_budget}; missed_by, and note, where there is one.

        Raises KeyError when unknown.
        """
        budget = BUDGETS[self.name]
        found: dict[str, Any] = {
            "name": self.name,
            "value": round(self.value, 3),
            "unit": budget.unit,
            "budget": budget.limit,
            "within_budget": budget.holds(self.value),
        }
        if found["within_budget"] is False:
            found["missed_by"] = round(budget.missed_by(self.value), 3)
        return {**found, "note": self.note} if self.note else found


def document(
    machine: Mapping[str, Any], measures: Iterable[Measure], *, health: Mapping[str, float], skipped: Mapping[str, str]
) -> dict[str, Any]:
    """The whole answer of `make bench`.

    within_budget: no measure is over its budget. skipped: what was not measured -> why.
    health: the numbers of the health checks, as they measure themselves; without budgets.
    comparison: counts of other installers, recorded.
    """
    found = [measure.as_json() for measure in measures]
    return {
        "schema_version": SCHEMA_VERSION,
        "machine": dict(machine),
        "within_budget": not any(entry["within_budget"] is False for entry in found),
        "measures": found,
        "health": dict(health),
        "comparison": {name: dict(counts) for name, counts in COMPARISON.items()},
        "skipped": dict(skipped),
    }
