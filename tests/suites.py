"""Suites of tests: which worker runs what, in which order, and how long each took.

One suite is one folder of tests/; in e2e one file, because these differ most. With several workers (pytest -n N) each
group below goes to one of them as a whole, the long ones first, so that the processor has the unit tests to do while
machines of the lab are waited for.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath

import pytest
from _pytest.mark import ParameterSet
from xdist.scheduler import LoadScopeScheduling

from pai_install.components.store import default_cache

COLD = "PAI_TESTS_COLD"
# which cases of a long list the gate takes; another number each day
SEED = "PAI_TESTS_SEED"

# files of tests/e2e with machines of their own
OWN_MACHINES = frozenset(
    f"e2e/test_{name}" for name in ("lab", "preflight", "ha", "killed", "log_store", "monitoring", "nodes")
)
# those that share a cluster with a scheduler, groups, and storages; all others share one without
JOB_CLUSTER = frozenset(f"e2e/test_{name}" for name in ("quickstart", "jobs", "groups", "member_attacks", "users"))
# fixtures that stand for these two clusters -> the one group of tests that may take them
CLUSTERS = {"founding": "cluster", "cluster": "cluster", "first_jobs": "job-cluster", "job_cluster": "job-cluster"}
# these begin at once, in this order; everything else fills the gaps
LONG_GROUPS = ("cluster", "job-cluster", "integration", "molecule", "e2e/test_preflight", "e2e/test_lab")
# while the first of them builds the components, the second would only wait for these
FIRST = "cluster"


@dataclass(frozen=True)
class Spent:
    """What one phase of one test took: its file, whether it was the test itself, seconds."""

    path: str
    is_call: bool
    seconds: float


def suite_of(path: str) -> str:
    """The suite of a test file given relative to the checkout: `tests/unit/site/test_load.py` -> `unit`."""
    folders = PurePath(path).parts[1:]
    return f"e2e/{PurePath(path).stem}" if folders[0] == "e2e" else folders[0]


def group_of(path: str) -> str:
    """Tests of the same group run one after another on one worker: they share machines, or fixtures of a file."""
    suite = suite_of(path)
    if suite in JOB_CLUSTER:
        return "job-cluster"
    if suite.startswith("e2e/") and suite not in OWN_MACHINES:
        return "cluster"
    return suite if suite.startswith("e2e/") or suite in LONG_GROUPS else path


def rank_of(group: str, *, cold: bool = False) -> int:
    """Where a group stands in the queue; equal ones keep their order. cold: the components are still to be built."""
    rank = LONG_GROUPS.index(group) if group in LONG_GROUPS else len(LONG_GROUPS)
    needs_components = group in LONG_GROUPS and group != FIRST
    return rank + len(LONG_GROUPS) if cold and needs_components else rank


def is_cold() -> bool:
    """Whether this run has to build the components; every worker must say the same."""
    return os.environ.get(COLD, "") == "yes"


def note_cold() -> None:
    """Looks once for all workers of a run, which inherit the answer."""
    built = any((default_cache() / "entries").glob("kubernetes-*"))
    os.environ.setdefault(COLD, "no" if built else "yes")


def note_seed() -> None:
    """Chooses the seed of `sampled` once for all workers of a run."""
    os.environ.setdefault(SEED, str(datetime.now(UTC).date().toordinal()))


def sampled(cases: Sequence[tuple[object, ...]], count: int = 8) -> list[ParameterSet]:
    """The parameters of a test of which the gate runs `count` cases, by the seed, and the soak all others."""
    chosen = set(random.Random(os.environ[SEED]).sample(range(len(cases)), count))  # noqa: S311 - no secret
    return [
        pytest.param(*case, marks=() if number in chosen else pytest.mark.soak) for number, case in enumerate(cases)
    ]


def name_of_case(value: object) -> str | None:
    """The name of a case with this value, None for pytest's own name.

    Bytes may have the time in them (gzip). Workers that collect other names than each other end the whole run.
    """
    return f"{len(value)}-bytes" if isinstance(value, bytes) else None


class Groups(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """pytest-xdist's way to keep tests together, by the groups above instead of by module."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(path_of(nodeid))


def arrange(items: list[pytest.Item]) -> None:
    """Puts the long groups first. Raises UsageError where a test would make one of the clusters a second time."""
    strangers = [item.nodeid for item in items if _second_cluster(item.nodeid, getattr(item, "fixturenames", ()))]
    if strangers:
        raise pytest.UsageError(f"tests/suites.py has these outside of the group of their cluster: {strangers}")
    cold = is_cold()
    items.sort(key=lambda item: rank_of(group_of(path_of(item.nodeid)), cold=cold))


def _second_cluster(nodeid: str, fixtures: Iterable[str]) -> bool:
    groups = {CLUSTERS[name] for name in fixtures if name in CLUSTERS}
    return not groups <= {group_of(path_of(nodeid))}


def path_of(nodeid: str) -> str:
    """The file of a test's identifier."""
    return nodeid.partition("::")[0]


def table(spent: Sequence[Spent]) -> list[str]:
    """Lines of a table: tests, minutes of preparing and of testing for each suite, the longest first."""
    suites = {suite_of(one.path) for one in spent}
    rows = sorted((_row(suite, spent) for suite in suites), key=lambda row: -(row[2] + row[3]))
    lines = [f"{'suite':<28} {'tests':>6} {'prepare':>8} {'test':>8} {'sum':>8}   minutes:seconds"]
    return lines + [
        f"{suite:<28} {tests:>6} {_clock(before):>8} {_clock(during):>8} {_clock(before + during):>8}"
        for suite, tests, before, during in rows
    ]


def _row(suite: str, spent: Sequence[Spent]) -> tuple[str, int, float, float]:
    """(suite, number of tests, seconds of fixtures, seconds of tests)."""
    own = [one for one in spent if suite_of(one.path) == suite]
    calls = [one.seconds for one in own if one.is_call]
    return suite, len(calls), sum(one.seconds for one in own if not one.is_call), sum(calls)


def _clock(seconds: float) -> str:
    return f"{round(seconds) // 60}:{round(seconds) % 60:02}"
