"""A saved plan holds while nothing has moved; a file that is none is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode
from pai_install.report.diffs import FileChange
from pai_install.report.plan import plan_document
from pai_install.run.saved import read_plan
from tests.errors import raises

CHANGE = FileChange("base", "one", "Write", "+x", "d1")


def test_unmoved_plan_passes_and_a_moved_one_is_refused(kit: Any, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    plan = kit.plan(kit.phase("base", "one"))
    saved = tmp_path / "plan.json"
    with raises("plan-file-invalid", "plan.json") as caught:
        read_plan(saved)
    assert caught.value.exit_code is ExitCode.USAGE
    saved.write_text(json.dumps(plan_document(plan).as_json()))
    assert not read_plan(saved).previewed
    read_plan(saved).require_unmoved(plan)
    with raises("plan-file-outdated") as caught:
        read_plan(saved).require_unmoved(kit.plan())
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED
    assert caught.value.details == snapshot


@pytest.mark.parametrize(
    ("now", "sentence"),
    [
        ((), "base on one: task Write would no longer change anything"),
        ((FileChange("base", "one", "Write", "+x", "d2"),), "base on one: task Write would change something else"),
        (
            (CHANGE, FileChange("base", "two", "Write", "+x", "d1")),
            "base on two: task Write would change something now",
        ),
    ],
)
def test_other_changes_than_those_that_were_shown_are_refused(
    kit: Any, tmp_path: Path, now: tuple[FileChange, ...], sentence: str
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_document(kit.plan(kit.phase("base", "one")), (CHANGE,)).as_json()))
    saved = read_plan(path)
    assert saved.previewed
    saved.require_same((CHANGE,))
    with raises("plan-file-outdated") as caught:
        saved.require_same(now)
    assert (caught.value.details, caught.value.exit_code) == (sentence, ExitCode.PREFLIGHT_FAILED)


def test_plan_of_another_operation_or_other_arguments_is_refused(kit: Any, tmp_path: Path) -> None:
    plan = replace(kit.plan(kit.phase("base", "one")), operation="node drain", arguments={"nodes": ("one",)})
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_document(plan).as_json()))
    read_plan(path).require_unmoved(plan)
    for other in (replace(plan, operation="apply"), replace(plan, arguments={"nodes": ("two",)})):
        with raises("plan-file-of-other-command", "nodes=") as caught:
            read_plan(path).require_unmoved(other)
        assert caught.value.exit_code is ExitCode.USAGE


def test_plan_of_another_release_is_refused_with_its_form(kit: Any, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({**plan_document(kit.plan()).as_json(), "schema_version": 99}))
    with raises("plan-file-schema-version", "99", "2") as caught:
        read_plan(path)
    assert caught.value.exit_code is ExitCode.USAGE
