from __future__ import annotations

import pytest

from pai_install.components.progress import Throttle, silent


def test_at_most_one_line_per_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("pai_install.components.progress.time.monotonic", lambda: now[0])
    told: list[str] = []
    throttle = Throttle(told.append, interval_s=10)
    for now[0] in (1.0, 9.9, 10.0, 15.0, 20.0, 20.1):
        throttle(f"at {now[0]}")
    assert told == ["at 10.0", "at 20.0"]


def test_silence_takes_any_line(capsys: pytest.CaptureFixture[str]) -> None:
    silent("a line")
    assert capsys.readouterr() == ("", "")
