"""One run at a time; who holds the site is named; a dead run's lock is taken over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pai_install.engine.processes import OwnerProcess
from pai_install.errors import ExitCode, PaiError
from pai_install.run.lock import holder, site_lock
from tests.errors import raises

HOLDER = """
import sys, time
from pathlib import Path
from pai_install.run.lock import holder, site_lock
with site_lock(Path(sys.argv[1]), "apply"):
    print("held", flush=True)
    time.sleep(60)
"""


def hold(state: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(state)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def test_second_run_is_refused_with_the_holder(tmp_path: Path) -> None:
    child = hold(tmp_path)
    try:
        with pytest.raises(PaiError, match=rf"`apply` by .* on .*, process {child.pid}, since 20") as caught:
            site_lock(tmp_path, "plan").__enter__()
    finally:
        child.kill()
        child.wait()
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED


def test_lock_of_a_killed_run_is_taken_over(tmp_path: Path) -> None:
    child = hold(tmp_path)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert (tmp_path / "lock.json").exists()
    with site_lock(tmp_path, "apply"):
        assert json.loads((tmp_path / "lock.json").read_text())["pid"] == os.getpid()


def test_holder_is_named_while_it_runs_and_only_then(tmp_path: Path) -> None:
    assert holder(tmp_path) is None
    child = hold(tmp_path)
    try:
        found = holder(tmp_path)
    finally:
        child.kill()
        child.wait()
    assert found is not None
    assert (found.pid, found.verb) == (child.pid, "apply")
    assert (tmp_path / "lock.json").exists()
    assert holder(tmp_path) is None


def test_looking_who_runs_is_in_nobodys_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks must never hold the lock, not for a moment: a run may want it just then."""

    def held(*_: object, **__: object) -> None:
        pytest.fail("looking took the lock")

    monkeypatch.setattr("filelock.FileLock.acquire", held)
    (tmp_path / "lock.json").write_text(
        json.dumps({"pid": 1, "user": "ops", "host": "x.example", "verb": "apply", "since": ""})
    )
    for card in (True, False):
        assert (holder(tmp_path) is not None) is card
        (tmp_path / "lock.json").unlink(missing_ok=True)


def test_run_that_is_just_ending_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_install.run.lock._TIMEOUT_S", 30)
    held = threading.Event()

    def status() -> None:
        with site_lock(tmp_path, "status"):
            held.set()
            time.sleep(0.2)

    ending = threading.Thread(target=status)
    ending.start()
    assert held.wait(60)
    with site_lock(tmp_path, "apply"):
        ending.join()


def test_card_of_another_container_counts_while_its_lock_is_held(tmp_path: Path) -> None:
    def move_away() -> None:
        card = json.loads((tmp_path / "lock.json").read_text())
        card["owner"] = str(replace(OwnerProcess.current(), namespace=1))
        (tmp_path / "lock.json").write_text(json.dumps(card))

    child = hold(tmp_path)
    try:
        move_away()
        assert holder(tmp_path) is not None
    finally:
        child.kill()
        child.wait()
    assert holder(tmp_path) is None


def test_lock_is_free_after_the_run_also_after_an_error(tmp_path: Path) -> None:
    lock = site_lock(tmp_path, "apply")
    lock.__enter__()
    with raises("site-locked"):
        site_lock(tmp_path, "apply").__enter__()
    assert not lock.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    with site_lock(tmp_path, "apply"):
        pass
    assert not (tmp_path / "lock.json").exists()


def test_holder_on_another_machine_is_not_taken_over(tmp_path: Path) -> None:
    card = {"pid": 1, "user": "ops", "host": "elsewhere.example", "verb": "apply", "since": "2026-03-01T12:00:00"}
    (tmp_path / "lock.json").write_text(json.dumps(card))
    with raises("site-locked-from-other-machine", "elsewhere.example") as caught:
        site_lock(tmp_path, "apply").__enter__()
    assert str(tmp_path / "lock.json") in caught.value.remedy
    (tmp_path / "lock.json").unlink()
    with site_lock(tmp_path, "apply"):
        pass
