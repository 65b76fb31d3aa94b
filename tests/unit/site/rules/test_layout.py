"""Rules between machines: names, addresses, types, roles."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.site.load import read_site
from tests.unit.site.sites import LAYOUT, write_site

HEAD = LAYOUT[: LAYOUT.index("machine-list:")]


def layout(*machines: str) -> str:
    """A layout of machines given as `name roles...`; roles are master, worker, storage and absent."""
    lines = ["machine-list:"]
    for number, machine in enumerate(machines, start=1):
        name, *roles = machine.split()
        lines += [f"  - hostname: {name}", f"    hostip: 10.0.0.{number}"]
        lines += [f"    machine-type: {'master' if number % 2 else 'gpu'}"]
        lines += [f"    {'absent' if role == 'absent' else f'pai-{role}'}: true" for role in roles]
    return HEAD + "\n".join(lines) + "\n"


def codes(directory: Path, *machines: str) -> list[str]:
    problems = read_site(write_site(directory, layout=layout(*machines))).problems
    return [problem.code for problem in problems if problem.code != "site.unused-sku"]


@pytest.mark.parametrize(
    "machines",
    [
        ("a master worker",),
        ("a master", "b worker"),
        ("a master worker", "b worker storage"),
        ("a master", "b master", "c master", "d worker"),
        ("a master", "b master", "c master absent", "d worker"),
        ("a master", "b master", "c master", "d master", "e master", "f worker"),
        ("a master", "b worker", "c worker absent"),
    ],
)
def test_clusters_of_every_shape(tmp_path: Path, machines: tuple[str, ...]) -> None:
    assert codes(tmp_path, *machines) == []


@pytest.mark.parametrize(
    ("machines", "code"),
    [
        (("a worker",), "site.no-control-plane"),
        (("a master",), "site.no-worker"),
        (("a master worker", "b master"), "site.control-plane-count"),
        (("a master worker", "b master", "c master", "d master"), "site.control-plane-count"),
        (("a master worker", *(f"m{n} master" for n in range(6))), "site.control-plane-count"),
        (("a master absent", "b worker"), "site.no-control-plane"),
        (("a master worker", "b"), "site.no-role"),
        (("a master worker", "a worker"), "site.duplicate-hostname"),
    ],
)
def test_clusters_that_are_none(tmp_path: Path, machines: tuple[str, ...], code: str) -> None:
    assert codes(tmp_path, *machines) == [code]


def test_a_third_of_the_same_name_points_at_the_first(tmp_path: Path) -> None:
    reading = read_site(write_site(tmp_path, layout=layout("a master worker", "a worker", "a worker")))
    first = LAYOUT[: LAYOUT.index("  - hostname")].count("\n") + 1
    assert [problem.message for problem in reading.problems] == [f"a is already used in line {first}"] * 2


def test_types_that_nobody_uses_are_quiet_beside_a_misspelt_one(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    reading = read_site(write_site(tmp_path, layout=LAYOUT.replace("machine-type: gpu", "machine-type: gpux")))
    assert [(problem.code, problem.remedy) for problem in reading.problems] == snapshot
