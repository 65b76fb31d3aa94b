"""`make bench`: measurements as one JSON document; nothing is asserted.

An installation, an `apply` that has nothing to do and a `node add` are measured on a lab of its own, which
needs root.
PAI_BENCH_SITE names a site whose cluster runs instead: its last installation is read from its reports.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from subprocess import CalledProcessError

from pai_install.site import load_site
from tests.perf.big_site import MACHINES, write_site
from tests.perf.budgets import Measure, document
from tests.perf.code_size import code_size
from tests.perf.engine_tasks import log_of, newest_log, tasks_on
from tests.perf.lab_runs import install_measures, join_measures, last_install, no_op_measures
from tests.perf.many_machines import growth
from tests.perf.own_lab import add_machine, own_lab
from tests.perf.process import ROOT, cost_of, pai_install, python, this_machine
from tests.perf.registry_bench import registry_measures

HELP_RUNS = 5
SITE_VARIABLE = "PAI_BENCH_SITE"
MIB = 2**20


def help_time() -> list[Measure]:
    """`--help` as the program alone and, where the bootstrap has made its environment, by that script."""
    plain = [cost_of(pai_install("--help")) for _ in range(HELP_RUNS)]
    note = f"median of {HELP_RUNS}"
    found = [
        Measure("help_wall", median(cost.wall_s for cost in plain), note),
        Measure("help_cpu", median(cost.cpu_s for cost in plain), note),
    ]
    if (ROOT / ".venv").exists():
        whole = [cost_of([str(ROOT / "pai-install"), "--help"]) for _ in range(HELP_RUNS)]
        found.append(Measure("help_with_bootstrap_wall", median(cost.wall_s for cost in whole), note))
    return found


def big_site() -> list[Measure]:
    """Validation of a site of a thousand machines; then, in another process, reading, inventory and plans of it."""
    with tempfile.TemporaryDirectory() as name:
        write_site(Path(name))
        validated = cost_of(pai_install("validate", "--site", name, "--format", "json"))
        planned = cost_of(python("-m", "tests.perf.big_site", name))
    smaller = []
    for machines in (10, 100):
        with tempfile.TemporaryDirectory() as name:
            write_site(Path(name), machines)
            cost = cost_of(python("-m", "tests.perf.big_site", name))
            smaller.append(Measure(f"plan_{machines}_cpu", cost.cpu_s))
    sizes = json.loads(planned.output)
    note = f"{MACHINES} machines: site, inventory, observations, {sizes['steps']} steps, and a plan without steps"
    return [
        Measure("validate_1000_wall", validated.wall_s, "the whole process"),
        Measure("validate_1000_cpu", validated.cpu_s),
        Measure("validate_1000_memory", validated.memory_mib),
        *smaller,
        Measure("plan_1000_wall", planned.wall_s, note),
        Measure("plan_1000_cpu", planned.cpu_s),
        Measure("plan_1000_first_cpu", sizes["first_plan_cpu_s"], "until the plan of new machines is saved"),
        Measure("plan_1000_memory", planned.memory_mib),
        Measure("plan_one_more_steps_elsewhere", sizes["steps_elsewhere_for_one_more"], "machine 1001"),
        Measure("node_add_1000_asks_elsewhere", sizes["machines_asked_for_one_more"], "the control planes"),
        Measure("inventory_1000_size", sizes["inventory_bytes"] / MIB),
        Measure("saved_plan_1000_size", sizes["plan_bytes"] / MIB),
    ]


def many_machines() -> list[Measure]:
    """An `apply` without work at sites of 10, 100, and 1,000 machines, for which a program stands."""
    found = []
    for answered in growth((10, 100, 1000)):
        name = f"no_op_{answered.machines}"
        found += [
            Measure(f"{name}_wall", answered.wall_s, "machines answer at once"),
            Measure(f"{name}_cpu", answered.cpu_s),
            Measure(f"{name}_memory", answered.memory_mib, "all processes of the controller host"),
        ]
    return found


def cluster(directory: Path) -> tuple[list[Measure], dict[str, str]]:
    """What a running cluster's installation cost, and an `apply` that has nothing to do; and what could not be told."""
    site = load_site(directory).site
    measures: list[Measure] = []
    skipped: dict[str, str] = {}
    found = last_install(directory / ".pai" / "runs")
    if found is None:
        skipped["lab_install"] = "no report of a successful run of all phases"
    else:
        tasks = tasks_on(log_of(directory / ".pai" / "runs" / found[0]))
        measures += install_measures(site, *found, tasks)
    try:
        runs = [cost_of(pai_install("apply", "--site", str(directory), "--yes", "--format", "json")) for _ in range(3)]
        again = min(runs, key=lambda cost: cost.wall_s)
        measures += no_op_measures(again.wall_s, again.cpu_s, json.loads(again.output))
        measures += reading(directory)
    except CalledProcessError as error:
        skipped["lab_no_op"] = f"apply ended with {error.returncode}"
    return measures, skipped


def reading(directory: Path) -> list[Measure]:
    """`status`, and a verb that reads a list from the cluster: the best of three. Raises CalledProcessError."""
    found = []
    for name, words in (("status", ["status"]), ("list", ["storage", "list"])):
        runs = [cost_of(pai_install(*words, "--site", str(directory))) for _ in range(3)]
        best = min(runs, key=lambda cost: cost.wall_s)
        found += [Measure(f"lab_{name}_wall", best.wall_s, "best of 3"), Measure(f"lab_{name}_cpu", best.cpu_s)]
    return found


def join(directory: Path) -> list[Measure]:
    """One more machine in a lab of the bench. Raises CalledProcessError when a step fails."""
    newcomer = add_machine(directory)
    plan = cost_of(pai_install("plan", "--no-diff", "--site", str(directory), "--format", "json"))
    done = cost_of(pai_install("node", "add", newcomer, "--site", str(directory), "--yes", "--format", "json"))
    tasks = tasks_on(newest_log(directory))
    return join_measures(done.wall_s, json.loads(plan.output), json.loads(done.output), newcomer, tasks)


def health() -> Mapping[str, float]:
    """The health checks' own measurements; none where the tree has no such module."""
    if find_spec("tests.perf.health_bench") is None:
        return {}
    from tests.perf.health_bench import measure  # noqa: PLC0415

    return measure()


def bench(site: Path | None) -> dict[str, object]:
    """The whole document; a part that fails is named in `skipped`, the others are measured all the same."""
    machine = this_machine()
    measures: list[Measure] = []
    skipped: dict[str, str] = {}
    numbers: dict[str, float] = {}

    def attempt(name: str, part: Callable[[], None]) -> None:
        try:
            part()
        except (OSError, ValueError, CalledProcessError, AssertionError) as error:  # the lab's commands assert
            skipped[name] = f"{type(error).__name__}: {error}"

    attempt("help", lambda: measures.extend(help_time()))
    attempt("thousand machines", lambda: measures.extend(big_site()))
    attempt("many machines", lambda: measures.extend(many_machines()))
    attempt("code size", lambda: measures.extend(code_size()))
    attempt("health", lambda: numbers.update(health()))

    def lab() -> None:
        with nullcontext(site) if site else own_lab() as directory:
            told, untold = cluster(directory)
            measures.extend(told)
            skipped.update(untold)
            if site is None:
                measures.extend(join(directory))
                attempt("registries", lambda: measures.extend(registry_measures(directory)))

    attempt("cluster", lab)
    return document(machine, measures, health=numbers, skipped=skipped)


if __name__ == "__main__":
    named = os.environ.get(SITE_VARIABLE)
    print(json.dumps(bench(Path(named) if named else None), indent=2))  # noqa: T201 - a program of its own
