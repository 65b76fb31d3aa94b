"""What labs share: the lock and the box's kernel settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from filelock import FileLock

from pai_install.errors import ExitCode
from pai_install.lab import box
from tests.errors import raises


@pytest.fixture(autouse=True)
def labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(box, "LABS_DIR", tmp_path)
    monkeypatch.setattr(box, "SETTINGS", {tmp_path / "ip_forward": 1, tmp_path / "instances": 8192})
    monkeypatch.setattr(box, "SETTINGS_BEFORE", tmp_path / "settings-before.json")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (tmp_path / "ip_forward").write_text("0\n")
    (tmp_path / "instances").write_text("128\n")
    return tmp_path


def test_settings_are_raised_once_and_given_back(labs: Path) -> None:
    assert box.raise_settings() == ("ip_forward", "instances")
    assert (labs / "ip_forward").read_text() == "1\n"
    assert (labs / "instances").read_text() == "8192\n"
    assert box.raise_settings() == ()
    box.restore_settings()
    assert (labs / "ip_forward").read_text() == "0\n"
    assert (labs / "instances").read_text() == "128\n"


def test_setting_that_is_high_enough_stays(labs: Path) -> None:
    (labs / "ip_forward").write_text("1\n")
    (labs / "instances").write_text("100000\n")
    assert box.raise_settings() == ()
    box.restore_settings()
    assert (labs / "instances").read_text() == "100000\n"


def test_first_value_is_the_one_that_comes_back(labs: Path) -> None:
    """Somebody lowered it again while a lab ran: the box's own value is still known."""
    box.raise_settings()
    (labs / "instances").write_text("200\n")
    box.raise_settings()
    box.restore_settings()
    assert (labs / "instances").read_text() == "128\n"


def test_settings_stay_while_a_lab_is_left(labs: Path) -> None:
    box.raise_settings()
    (labs / "lab").mkdir()
    (labs / "lab/lab.json").touch()
    box.restore_settings()
    assert (labs / "ip_forward").read_text() == "1\n"


def test_one_command_at_a_time(labs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "LOCK_TIMEOUT_S", 0.1)
    with FileLock(labs / ".lock"), raises("lab-locked"), box.lab_lock():
        pytest.fail("entered")


def test_the_lock_is_free_again_after_a_failure() -> None:
    with pytest.raises(RuntimeError), box.lab_lock():
        raise RuntimeError
    with box.lab_lock():
        pass


def test_root_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with raises("lab-needs-root") as caught:
        box.lab_lock().__enter__()
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED
    assert "sudo" in caught.value.remedy
