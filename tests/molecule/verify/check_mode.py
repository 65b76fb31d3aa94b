"""For every role: check mode says what converging does, and nothing once it is done."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host


@pytest.fixture(scope="module")
def runs() -> list[dict[str, Any]]:
    """The runs of converge.yml: check mode, converge, idempotence, check mode."""
    evidence = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "evidence"
    return [json.loads(line) for line in (evidence / "changes.jsonl").read_text().splitlines()]


def name_of(host: Host) -> str:
    """The machine's name in the inventory."""
    name: str = host.ansible.get_variables()["inventory_hostname"]
    return name


def test_every_step_ran(runs: list[dict[str, Any]]) -> None:
    assert [run["check"] for run in runs] == [True, False, False, True]


def test_check_mode_foresees_whether_something_changes(host: Host, runs: list[dict[str, Any]]) -> None:
    name = name_of(host)
    assert bool(runs[0]["changed"][name]) is bool(runs[1]["changed"][name])


def test_check_mode_afterwards_finds_nothing(host: Host, runs: list[dict[str, Any]]) -> None:
    assert runs[-1]["changed"][name_of(host)] == 0
