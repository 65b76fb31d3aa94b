"""The state folder is private, out of version control, and does not grow for ever."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from pai_install.run.state import open_state, state_of

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folder_is_private_and_ignored_by_git(tmp_path: Path) -> None:
    (tmp_path / ".pai").mkdir(mode=0o755)
    state = open_state(tmp_path)
    assert state.path == tmp_path / ".pai"
    assert mode(state.path) == 0o700
    assert (state.path / ".gitignore").read_text() == "*\n"
    open_state(tmp_path)


def test_run_is_named_by_its_time_in_utc(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    there = NOW.astimezone(timezone(timedelta(hours=9)))
    run = state.new_run(there)
    assert run.name == "20260301T120000Z"
    assert mode(run.path) == 0o700
    assert mode(state.runs) == 0o700


def test_two_runs_within_a_second_have_two_folders_in_order(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    names = [state.new_run(NOW).name for _ in range(3)]
    assert names == ["20260301T120000Z", "20260301T120000Z-2", "20260301T120000Z-3"]
    assert [run.name for run in state.all_runs()] == names


def test_last_twenty_runs_are_kept(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    runs = [state.new_run(NOW + timedelta(minutes=minute)) for minute in range(23)]
    assert [run.name for run in state.all_runs()] == [run.name for run in runs[3:]]
    assert not runs[2].path.exists()


def test_looking_pushes_out_no_report(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    reported = state.new_run(NOW)
    reported.report("json").write_text("{}")
    for minute in range(1, 30):
        state.new_run(NOW + timedelta(minutes=minute))
    assert state.reports()[0] == reported.report("json")
    assert len(state.all_runs()) == 21


def test_run_at_work_is_kept_however_many_begin(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    run = state.new_run(NOW)
    with run.in_use():
        assert not run.finished
        for minute in range(1, 30):
            state.new_run(NOW + timedelta(minutes=minute))
        assert run.path.is_dir()
    assert list(run.path.iterdir()) == []
    state.new_run(NOW + timedelta(minutes=30))
    assert not run.path.exists()


def test_run_whose_process_was_killed_is_finished(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    run = state.new_run(NOW)
    (run.path / "in-use").touch()
    assert run.finished


def test_reports_are_those_of_runs_that_wrote_one(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    assert state.all_runs() == []
    assert state.reports() == []
    first, second = state.new_run(NOW), state.new_run(NOW + timedelta(minutes=1))
    assert state.reports() == []
    first.report("json").write_text("{}")
    assert state.reports() == [first.path / "report.json"]
    second.report("json").write_text("{}")
    assert state.reports() == [second.path / "report.json", first.path / "report.json"]


def test_looking_for_the_folder_makes_none(tmp_path: Path) -> None:
    state = state_of(tmp_path / "nowhere")
    assert state.path == tmp_path / "nowhere" / ".pai"
    assert (state.reports(), list(tmp_path.iterdir())) == ([], [])
