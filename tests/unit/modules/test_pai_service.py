"""Units that are started and restarted, with a stand-in systemctl that keeps its units in files."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import ModuleFailedError, Run

STAND_IN_SYSTEMCTL = """#!/usr/bin/env python3
import json, os, sys
home = os.environ["STAND_IN_SYSTEMCTL"]
units = json.load(open(home + "/units.json"))
words = [word for word in sys.argv[1:] if not word.startswith("--")]
if words[0] == "show":
    wanted = [word for word in sys.argv if word.startswith("--property=")][0].split("=", 1)[1].split(",")
    blocks = [{"Id": name, **units.get(name, {"LoadState": "not-found"})} for name in words[1:]]
    print("\\n\\n".join("\\n".join(f"{k}={b[k]}" for k in wanted if k in b) for b in blocks))
else:
    open(home + "/calls", "a").write(" ".join(words) + "\\n")
    sys.exit(1 if " ".join(words) == os.environ.get("STAND_IN_FAILS") else 0)
"""
RUNNING = {
    "LoadState": "loaded",
    "ActiveState": "active",
    "UnitFileState": "enabled",
    "NeedDaemonReload": "no",
    "FragmentPath": "/usr/lib/systemd/system/x.service",
}


class Systemd:
    """The stand-in: its units, and what was asked of it."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def has(self, **changes: str) -> None:
        """One unit x.service that has run for a minute, with these properties changed."""
        started = int((time.clock_gettime(time.CLOCK_MONOTONIC) - 60) * 1e6)
        unit = {**RUNNING, "InactiveExitTimestampMonotonic": str(started), **changes}
        (self.home / "units.json").write_text(json.dumps({"x.service": unit}))

    @property
    def calls(self) -> list[str]:
        """Every call but `show`."""
        path = self.home / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    """Comes first on PATH; systemctl and journalctl."""
    home = tmp_path / "systemd"
    home.mkdir()
    for name, text in (("systemctl", STAND_IN_SYSTEMCTL), ("journalctl", "#!/bin/sh\necho a log line\n")):
        (home / name).write_text(text)
        (home / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    monkeypatch.setenv("STAND_IN_SYSTEMCTL", str(home))
    made = Systemd(home)
    made.has()
    return made


def unit(**words: Any) -> dict[str, Any]:
    """One entry of `units`."""
    return {"name": "x.service", **words}


@pytest.fixture
def young(tmp_path: Path) -> str:
    """A file that was written after the unit's start."""
    path = tmp_path / "young.conf"
    path.write_text("new")
    return str(path)


def test_a_unit_that_is_as_it_should_be_is_left_alone(systemd: Systemd, run_module: Run) -> None:
    assert not run_module("pai_service", units=[unit()])["changed"]
    assert systemd.calls == []


def test_a_unit_file_that_comes_first_is_noticed(
    library: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """systemd does not notice a new file that shadows the one it knows: the old program would be restarted."""
    module = library("pai_service")
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
