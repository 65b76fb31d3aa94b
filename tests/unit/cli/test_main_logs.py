"""Logs of internal errors do not pile up in a folder that everybody shares."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from pai_install.cli import main


def test_only_the_last_logs_of_internal_errors_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    other = tmp_path / "something.log"
    other.touch()
    for _ in range(13):
        main._show_bug(ValueError("x"), ["plan"], debug=False)
    assert len(list(tmp_path.glob("pai-install-*.log"))) == 10
    assert other.exists()
