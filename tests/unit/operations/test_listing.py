"""Operations list themselves with what a program needs to offer them."""

from __future__ import annotations

import json

import jsonschema  # type: ignore[import-untyped]
import pytest

from pai_install.json_schema import schema_of
from pai_install.operations.listing import OPERATIONS, OperationsReport
from tests.unit.cli.stub_environment import run


def test_list_is_what_its_schema_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["operations", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(schema_of(OperationsReport)).validate(data)
    assert [one["name"] for one in data["operations"]] == [one.name for one in OPERATIONS]
    for one in data["operations"]:
        jsonschema.Draft202012Validator.check_schema(one["arguments"])
        assert all(field["description"] for field in one["arguments"]["properties"].values()), one["name"]


def test_text_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["operations"]) == 0
    out = capsys.readouterr().out
    assert [line.split(":")[0] for line in out.splitlines() if not line.startswith(" ")] == [
        one.name for one in OPERATIONS
    ]


def test_names_are_given_once() -> None:
    assert len({one.name for one in OPERATIONS}) == len(OPERATIONS)
