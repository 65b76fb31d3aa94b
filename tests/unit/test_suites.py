"""How tests are shared among workers, and the table of their times."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from tests import suites
from tests.suites import Spent


@pytest.mark.parametrize(
    ("path", "suite"),
    [
        ("tests/unit/site/test_load.py", "unit"),
        ("tests/e2e/test_health.py", "e2e/test_health"),
        ("tests/molecule/test_roles.py", "molecule"),
    ],
)
def test_suite_is_a_folder_and_in_e2e_a_file(path: str, suite: str) -> None:
    assert suites.suite_of(path) == suite


def test_files_of_the_one_cluster_stay_together() -> None:
    assert suites.group_of("tests/e2e/test_health.py") == suites.group_of("tests/e2e/test_power_off.py") == "cluster"


def test_files_of_the_cluster_with_jobs_stay_together() -> None:
    files = ("tests/e2e/test_quickstart.py", "tests/e2e/test_jobs.py")
    assert {suites.group_of(path) for path in files} == {"job-cluster"}


def test_other_machines_are_a_group_per_file() -> None:
    assert suites.group_of("tests/e2e/test_lab.py") == "e2e/test_lab"
    assert suites.group_of("tests/molecule/test_roles.py") == "molecule"


def test_unit_tests_stay_with_their_file() -> None:
    path = "tests/unit/site/test_load.py"
    assert suites.group_of(path) == path


class Item:
    """A collected test."""

    def __init__(self, nodeid: str, *fixtures: str) -> None:
        self.nodeid, self.fixturenames = nodeid, fixtures


def test_each_cluster_has_tests_of_its_group_alone() -> None:
    known: Any = [
        Item("tests/e2e/test_health.py::test_a", "cluster"),
        Item("tests/e2e/test_jobs.py::test_a", "job_cluster"),
    ]
    suites.arrange(known)


@pytest.mark.parametrize(
    ("nodeid", "fixtures"),
    [
        ("tests/e2e/test_lab.py::test_a[1]", ("cluster", "tmp_path")),
        ("tests/e2e/test_lab.py::test_a[1]", ("job_cluster",)),
        ("tests/e2e/test_jobs.py::test_a", ("cluster",)),
        ("tests/e2e/test_health.py::test_a", ("first_jobs",)),
        ("tests/e2e/test_health.py::test_a", ("cluster", "job_cluster")),
    ],
)
def test_second_cluster_is_refused(nodeid: str, fixtures: tuple[str, ...]) -> None:
    stranger: Any = [Item(nodeid, *fixtures)]
    with pytest.raises(pytest.UsageError, match="outside of the group"):
        suites.arrange(stranger)


def test_long_groups_begin_first() -> None:
    groups = ["tests/unit/test_redact.py", "e2e/test_lab", "molecule", "integration", "cluster"]
    order = sorted(groups, key=suites.rank_of)
    assert order == ["cluster", "integration", "molecule", "e2e/test_lab", "tests/unit/test_redact.py"]


def test_only_one_worker_waits_for_components_that_are_still_to_be_built() -> None:
    groups = ["integration", "molecule", "tests/unit/test_redact.py", "cluster"]
    order = sorted(groups, key=lambda group: suites.rank_of(group, cold=True))
    assert order == ["cluster", "tests/unit/test_redact.py", "integration", "molecule"]


def test_table_adds_up_and_begins_with_the_longest() -> None:
    heads, *rows = suites.table(
        [
            Spent("tests/unit/test_redact.py", False, 1.4),
            Spent("tests/unit/test_redact.py", True, 2.3),
            Spent("tests/unit/site/test_load.py", True, 60),
            Spent("tests/e2e/test_lab.py", False, 119.6),
            Spent("tests/e2e/test_lab.py", True, 0.2),
        ]
    )
    assert heads.split()[:5] == ["suite", "tests", "prepare", "test", "sum"]
    assert [row.split() for row in rows] == [
        ["e2e/test_lab", "1", "2:00", "0:00", "2:00"],
        ["unit", "2", "0:01", "1:02", "1:04"],
    ]


def test_names_of_cases_are_the_same_in_each_second() -> None:
    """gzip writes the time. A run ended because its workers collected a case in two different seconds."""
    one, later = (gzip.compress(b"x", mtime=second) for second in (1, 2))
    assert one != later
    assert suites.name_of_case(one) == suites.name_of_case(later) is not None
    assert suites.name_of_case("word") is None
