"""Processes are found by their owner's mark and ended, whoever started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pai_install.engine.processes import OWNER_VARIABLE, OwnerProcess, end, orphans, owned_by, with_sockets_in

NAMESPACE = OwnerProcess.current().namespace
STUBBORN = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for child in started:
        child.kill()
        child.wait()


def start(children: list[subprocess.Popen[str]], mark: str, code: str = "import time; time.sleep(60)") -> int:
    code = f"print('up', flush=True); {code}" if "print" not in code else code
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        env={OWNER_VARIABLE: mark},
        text=True,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    children.append(child)
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"
    return child.pid


def dead_owner() -> OwnerProcess:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    return OwnerProcess(gone.pid, 1, NAMESPACE)


def test_this_process_is_alive_and_reads_back_as_text() -> None:
    owner = OwnerProcess.current()
    assert owner.alive()
    assert owner.pid == os.getpid()
    assert OwnerProcess.parse(f"{owner}-abc123") == owner


def test_id_that_was_given_to_another_process_is_not_the_owner() -> None:
    assert not OwnerProcess(os.getpid(), 1, NAMESPACE).alive()


def test_zombie_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        stat = open(f"/proc/{child.pid}/stat").read()  # noqa: PTH123, SIM115 - one read
        owner = OwnerProcess(child.pid, int(stat[stat.rfind(")") + 2 :].split()[19]), NAMESPACE)
        assert owner.alive()
        child.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, not yet collected
        assert not owner.alive()
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("text", ["", "abc", "12", "12.x.1", "x.12.1", "-12.3.1", "12.3", "1.2.3.4"])
def test_other_text_is_no_owner(text: str) -> None:
    assert OwnerProcess.parse(text) is None


def test_marked_processes_are_found_also_outside_the_group(children: list[subprocess.Popen[str]]) -> None:
    owner = OwnerProcess.current()
    mine = start(children, str(owner))
    other = start(children, "1.1.1")
    found = owned_by(owner)
    assert mine in found
    assert other not in found
    assert os.getpid() not in found


def test_orphans_are_those_whose_owner_is_gone(children: list[subprocess.Popen[str]]) -> None:
    orphan = start(children, str(dead_owner()))
    kept = start(children, str(OwnerProcess.current()))
    found = orphans()
    assert orphan in found
    assert kept not in found


def test_run_of_another_container_is_no_orphan(children: list[subprocess.Popen[str]]) -> None:
    elsewhere = replace(dead_owner(), namespace=NAMESPACE + 1)
    assert start(children, str(elsewhere)) not in orphans()
    assert elsewhere.alive()
    assert not elsewhere.here


def test_end_kills_what_does_not_listen(children: list[subprocess.Popen[str]]) -> None:
    stubborn = start(children, "x", STUBBORN)
    polite = start(children, "x")
    began = time.monotonic()
    end([stubborn, polite], timeout_s=0.3)
    assert [child.wait(timeout=20) for child in children] == [-signal.SIGKILL, -signal.SIGTERM]
    assert time.monotonic() - began < 20


def test_end_of_nothing_does_not_wait() -> None:
    gone = dead_owner().pid
    began = time.monotonic()
    end([], timeout_s=60)
    end([gone], timeout_s=60)
    assert time.monotonic() - began < 30


def test_command_must_be_sshs(children: list[subprocess.Popen[str]]) -> None:
    start(children, "x", "import time; '/tmp/some-sockets'; time.sleep(60)")
    assert with_sockets_in(Path("/tmp/some")) == frozenset()


def test_the_beginning_of_a_folders_name_is_not_the_folder(tmp_path: Path) -> None:
    """A user of the controller host makes folders that are called like the beginning of another's."""
    folder = tmp_path / "pai-ssh-10.20.30-abc"
    code = "import time; print('up', flush=True); time.sleep(60)"
    words = ["ssh", "-c", code, f"ControlPath={folder}/x"]
    with subprocess.Popen(words, executable=sys.executable, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        try:
            assert with_sockets_in(tmp_path / "pai-ssh-10.20.30") == frozenset()
            assert with_sockets_in(folder) == {child.pid}
        finally:
            child.kill()
