"""Budgets compare the right way round, and the answer has its published form."""

from __future__ import annotations

import json

import pytest

from tests.perf.budgets import BUDGETS, SCHEMA_VERSION, Budget, Measure, document

MACHINE = {"cores": 2, "load_1m": 0.1}


@pytest.mark.parametrize(
    ("budget", "value", "holds"),
    [
        (Budget("s", 2), 1.999, True),
        (Budget("s", 2), 2, True),
        (Budget("s", 2), 2.001, False),
        (Budget("ratio", 1.2, at_least=True), 1.2, True),
        (Budget("ratio", 1.2, at_least=True), 1.19, False),
        (Budget("tasks", 0), 0, True),
        (Budget("tasks", 0), 1, False),
        (Budget("s"), 1e9, None),
    ],
)
def test_a_bound_holds_or_not(budget: Budget, value: float, holds: bool | None) -> None:
    assert budget.holds(value) is holds


def test_a_measure_says_everything_needed_to_read_it() -> None:
    assert Measure("help_wall", 0.30049, "median of 5").as_json() == {
        "name": "help_wall",
        "value": 0.3,
        "unit": "s",
        "budget": 0.2,
        "within_budget": False,
        "missed_by": 0.1,
        "note": "median of 5",
    }


def test_a_bound_is_missed_by_what_is_beyond_it() -> None:
    assert Budget("ratio", 1.2, at_least=True).missed_by(0.9) == pytest.approx(0.3)
    assert Budget("s", 2).missed_by(1) == Budget("s").missed_by(9) == 0


def test_a_value_just_over_its_budget_is_over_although_it_is_rounded() -> None:
    found = Measure("help_wall", 0.2004).as_json()
    assert (found["value"], found["within_budget"]) == (0.2, False)


def test_a_measure_without_a_note_has_none() -> None:
    assert "note" not in Measure("help_cpu", 0.1).as_json()


def test_an_unknown_measure_is_refused() -> None:
    with pytest.raises(KeyError):
        Measure("nonsense", 1).as_json()


@pytest.mark.parametrize(
    ("measures", "within"),
    [
        ([], True),
        ([Measure("help_cpu", 99)], True),
        ([Measure("help_wall", 0.1), Measure("validate_1000_wall", 1.5)], True),
        ([Measure("help_wall", 0.1), Measure("validate_1000_wall", 2.5)], False),
    ],
)
def test_the_whole_is_within_budget_when_no_part_is_over(measures: list[Measure], within: bool) -> None:
    assert document(MACHINE, measures, health={}, skipped={})["within_budget"] is within


def test_the_document_is_json_with_a_version() -> None:
    found = document(MACHINE, [Measure("help_cpu", 0.1)], health={"seconds": 1.0}, skipped={"cluster": "no site"})
    assert json.loads(json.dumps(found)) == found
    assert found["schema_version"] == SCHEMA_VERSION
    assert found["machine"] == MACHINE
    assert found["health"] == {"seconds": 1.0}
    assert found["skipped"] == {"cluster": "no site"}
    assert [entry["name"] for entry in found["measures"]] == ["help_cpu"]


def test_every_measure_has_a_unit() -> None:
    assert all(budget.unit for budget in BUDGETS.values())
