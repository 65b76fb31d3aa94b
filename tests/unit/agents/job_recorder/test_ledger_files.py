"""Files of the ledger: months, torn lines, and bounds."""

from __future__ import annotations

import time
from calendar import timegm
from pathlib import Path

import pytest

from pai_install.agents.job_recorder.ledger_files import LedgerFiles


def at(moment: str) -> float:
    return timegm(time.strptime(moment, "%Y-%m-%d %H:%M:%S"))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_each_month_of_utc_has_a_file(tmp_path: Path) -> None:
    files = LedgerFiles(tmp_path, 13)
    files.append(["one"], at("2026-11-30 23:59:59"))
    assert not files.begins(at("2026-11-30 23:59:59"))
    assert files.begins(at("2026-12-01 00:00:00"))
    files.append(["two", "three"], at("2026-12-01 00:00:00"))
    assert names(tmp_path) == ["ledger-2026-11.jsonl", "ledger-2026-12.jsonl"]
    assert list(files.lines(1)) == ["two\n", "three\n"]
    assert list(files.lines(2)) == ["one\n", "two\n", "three\n"]
    assert (tmp_path / "ledger-2026-12.jsonl").stat().st_mode & 0o777 == 0o600


def test_torn_line_stays_alone(tmp_path: Path) -> None:
    now, path = at("2026-11-05 00:00:00"), tmp_path / "ledger-2026-11.jsonl"
    path.write_text('{"whole": 1}\n{"to')
    LedgerFiles(tmp_path, 13).append(['{"next": 1}'], now)
    assert path.read_text().splitlines() == ['{"whole": 1}', '{"to', '{"next": 1}']


def test_old_months_go(tmp_path: Path) -> None:
    for month in ("2025-08", "2025-09", "2025-10", "2025-12", "2026-10"):
        (tmp_path / f"ledger-{month}.jsonl").write_text("x\n")
    (tmp_path / "other").write_text("")
    LedgerFiles(tmp_path, 13).append(["x"], at("2026-11-01 00:00:00"))
    kept = ["ledger-2025-10.jsonl", "ledger-2025-12.jsonl", "ledger-2026-10.jsonl", "ledger-2026-11.jsonl", "other"]
    assert names(tmp_path) == kept


def test_bound_of_bytes_takes_the_oldest_and_never_the_current_month(tmp_path: Path) -> None:
    for month in ("2026-08", "2026-09", "2026-10"):
        (tmp_path / f"ledger-{month}.jsonl").write_text("x" * 600)
    files = LedgerFiles(tmp_path, 13, max_bytes=1300)
    files.append(["y" * 500], at("2026-11-01 00:00:00"))
    assert names(tmp_path) == ["ledger-2026-09.jsonl", "ledger-2026-10.jsonl", "ledger-2026-11.jsonl"]
    with pytest.raises(OSError, match="at most 1300"):
        files.append(["y" * 900], at("2026-11-01 00:00:01"))
    assert list(files.lines(1)) == ["y" * 500 + "\n"]
