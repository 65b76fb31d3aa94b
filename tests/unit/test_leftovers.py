"""A lab belongs to a test run that has ended when the process in that run's lock is gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pai_install.lab.record import LabRecord
from tests import leftovers

RUNS = "1"
GONE = str(2**22 + 1)  # above the greatest process id of Linux


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "pytest-of-root" / "pytest-7"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(("lock", "left"), [(RUNS, False), (GONE, True), ("", True), (None, True)])
def test_the_lock_decides(run: Path, lock: str | None, left: bool) -> None:
    if lock is not None:
        (run / ".lock").write_text(lock)
    assert leftovers.is_leftover(str(run / "popen-gw0/site0/lab/.pai")) is left


def test_a_site_of_somebody_who_works_with_it_is_left_alone(tmp_path: Path) -> None:
    assert not leftovers.is_leftover("/root/layouts/lab/.pai")
    assert not leftovers.is_leftover("/tmp/fresh/.pai")


def test_labs_of_ended_runs_alone_are_removed(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended, mine = str(run / "site0/.pai"), "/root/layouts/lab/.pai"
    removed: list[Path] = []

    def down_site(state_dir: Path) -> tuple[str, ...]:
        removed.append(state_dir)
        return ("bridge b",)

    records = [(Path("a"), LabRecord("a", ended)), (Path("b"), LabRecord("b", mine))]
    monkeypatch.setattr(leftovers, "all_labs", lambda: tuple(records))
    monkeypatch.setattr(leftovers, "down_site", down_site)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert leftovers.remove_leftovers() == ("bridge b",)
    assert removed == [Path(ended)]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert leftovers.remove_leftovers() == ()
