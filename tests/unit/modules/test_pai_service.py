"""Units that are started and restarted, with a stand-in systemctl that keeps its units in files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.ansible_path import module_util

from .conftest import RUNNING, ModuleFailedError, Run, Systemd


def unit(**words: Any) -> dict[str, Any]:
    """One entry of `units`."""
    return {"name": "x.service", **words}


def test_a_unit_that_is_as_it_should_be_is_left_alone(systemd: Systemd, run_module: Run) -> None:
    assert not run_module("pai_service", units=[unit()])["changed"]
    assert systemd.calls == []


def test_a_unit_file_that_comes_first_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """systemd does not notice a new file that shadows the one it knows: the old program would be restarted."""
    module = module_util("pai_units")
    monkeypatch.setattr(module, "ADMIN_UNITS", str(tmp_path))
    assert not module.outdated("x.service", RUNNING)
    (tmp_path / "x.service").write_text("[Service]\n")
    assert module.outdated("x.service", RUNNING)
    assert not module.outdated("x.service", {**RUNNING, "FragmentPath": str(tmp_path / "x.service")})


def test_systemd_reads_its_units_again_before_the_restart(systemd: Systemd, run_module: Run, young: str) -> None:
    systemd.has(NeedDaemonReload="yes")
    run_module("pai_service", units=[unit(restart_if_newer=[young])])
    assert systemd.calls.index("daemon-reload") < systemd.calls.index("restart x.service")


def test_check_mode_says_it_and_does_nothing(systemd: Systemd, run_module: Run, young: str) -> None:
    result = run_module("pai_service", check=True, units=[unit(restart_if_newer=[young])])
    assert result["actions"] == ["restarted x.service"]
    assert systemd.calls == []


def test_a_file_that_is_read_on_a_reload_restarts_nothing(systemd: Systemd, run_module: Run, young: str) -> None:
    result = run_module("pai_service", units=[unit(reload_if_newer=[young])])
    assert result["actions"] == ["reloaded x.service"]
    assert systemd.calls == ["reset-failed x.service", "reload x.service"]
    assert result["managed"][0]["reads"] == []


def test_a_reload_is_made_once(systemd: Systemd, run_module: Run, young: str) -> None:
    """The unit started a minute ago, and changed its state after the file was written."""
    systemd.has(StateChangeTimestampMonotonic=str(int((time.clock_gettime(time.CLOCK_MONOTONIC) + 1) * 1e6)))
    assert not run_module("pai_service", units=[unit(reload_if_newer=[young])])["changed"]
    assert systemd.calls == []


def test_a_restart_makes_the_reload_needless(systemd: Systemd, run_module: Run, young: str) -> None:
    run_module("pai_service", units=[unit(restart_if_newer=[young], reload_if_newer=[young])])
    assert systemd.calls == ["reset-failed x.service", "restart x.service"]


def test_a_reload_that_fails_is_told(
    systemd: Systemd, run_module: Run, young: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_FAILS", "reload x.service")
    with pytest.raises(ModuleFailedError, match=r"x\.service did not come up"):
        run_module("pai_service", units=[unit(reload_if_newer=[young])], timeout=1)


def test_record_names_the_files_that_a_unit_reads(systemd: Systemd, run_module: Run, young: str) -> None:
    del systemd
    managed = run_module("pai_service", units=[unit(restart_if_newer=[young])])["managed"]
    assert managed[0]["reads"] == [young]


def test_an_unwanted_unit_is_stopped_and_expected_nowhere(systemd: Systemd, run_module: Run) -> None:
    result = run_module("pai_service", units=[unit(state="absent")])
    assert (result["actions"], result["managed"]) == (["stopped and disabled x.service"], [])
    assert systemd.calls == ["disable x.service"]
