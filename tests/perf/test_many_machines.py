"""The program that stands for many machines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.perf.many_machines import memory_mib_of, tree_of, write_ssh

MODULE = "/bin/sh -c 'sudo -H -S -n -u root /bin/sh -c '\"'\"'echo BECOME-SUCCESS-abcxyz ; /usr/bin/python3'\"'\"''"


@pytest.fixture
def ssh(tmp_path: Path) -> Path:
    """The program, with the answer of one machine."""
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "10.20.0.1").write_text('{"changed": false}')
    write_ssh(tmp_path / "ssh", tmp_path / "answers")
    return tmp_path / "ssh"


def test_module_is_read_whole_and_answered(ssh: Path) -> None:
    argv = [str(ssh), "-C", "-o", "ControlMaster=auto", "10.20.0.1", MODULE]
    done = subprocess.run(argv, input="x" * 2**20, capture_output=True, text=True, check=True)
    assert done.stdout == 'BECOME-SUCCESS-abcxyz\n{"changed": false}'


def test_other_machine_has_no_answer(ssh: Path) -> None:
    done = subprocess.run([str(ssh), "10.20.0.2", MODULE], input="", capture_output=True, text=True, check=False)
    assert done.returncode != 0


def test_search_for_the_interpreter_runs_here(ssh: Path) -> None:
    done = subprocess.run([str(ssh), "10.20.0.1", "echo PLATFORM"], capture_output=True, text=True, check=True)
    assert done.stdout == "PLATFORM\n"


def test_memory_counts_the_processes_below() -> None:
    below = "x = b'1' * 2**26; print(1, flush=True); input()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {below!r}])"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    found = tree_of(child.pid)
    assert child.pid in found
    assert len(found) == 2
    assert sum(map(memory_mib_of, found)) > 64
    assert child.pid in tree_of(os.getpid())
    child.communicate(b"\n", timeout=20)
