"""What labs share: the lock and the switch for packet forwarding."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from filelock import FileLock

from pai_install.errors import ExitCode, PaiError
from pai_install.lab import box


@pytest.fixture(autouse=True)
def labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(box, "LABS_DIR", tmp_path)
    monkeypatch.setattr(box, "FORWARDING", tmp_path / "ip_forward")
    monkeypatch.setattr(box, "FORWARDING_BEFORE", tmp_path / "forwarding-before")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path


def test_forwarding_is_allowed_once_and_given_back(labs: Path) -> None:
    (labs / "ip_forward").write_text("0\n")
    assert box.allow_forwarding()
    assert (labs / "ip_forward").read_text() == "1\n"
    assert not box.allow_forwarding()
    box.restore_forwarding()
    assert (labs / "ip_forward").read_text() == "0\n"


def test_forwarding_that_the_box_wanted_stays(labs: Path) -> None:
    (labs / "ip_forward").write_text("1\n")
    assert not box.allow_forwarding()
    box.restore_forwarding()
    assert (labs / "ip_forward").read_text() == "1\n"


def test_forwarding_stays_while_a_lab_is_left(labs: Path) -> None:
    (labs / "ip_forward").write_text("0\n")
    box.allow_forwarding()
    (labs / "lab").mkdir()
    (labs / "lab/lab.json").touch()
    box.restore_forwarding()
    assert (labs / "ip_forward").read_text() == "1\n"


def test_one_command_at_a_time(labs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "LOCK_PATIENCE_S", 0.1)
    with FileLock(labs / ".lock"), pytest.raises(PaiError, match="another lab command"), box.lab_lock():
        pytest.fail("entered")


def test_the_lock_is_free_again_after_a_failure() -> None:
    with pytest.raises(RuntimeError), box.lab_lock():
        raise RuntimeError
    with box.lab_lock():
        pass


def test_root_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PaiError, match="root") as caught, box.lab_lock():
        pytest.fail("entered")
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED
    assert "sudo" in caught.value.remedy
