"""A run goes on to its end when nobody reads its output any more; a closed terminal ends it cleanly."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from pai_install.errors import ExitCode
from pai_install.run.state import open_state
from tests.unit.cli.stub_environment import write_site

# argv: the site. The stand-in engine says that phase `slow` began, in a file, and takes its time.
RUN = """
import signal, sys, time
from pathlib import Path
from tests.unit.cli.stub_environment import World
from tests.unit.runs import done, event, phase
from pai_install.cli.main import main
from pai_install.operations.install import Install

# a shell that runs the tests in the background, or nohup, has them ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

site, seconds = sys.argv[1], float(sys.argv[2])

class Slow(list):
    def __iter__(self):
        Path(site, "began").touch()
        time.sleep(seconds)
        return super().__iter__()

hosts = ("master", "one", "two")
plan = tuple(phase(name, *hosts) for name in ("base", "slow", "workers"))
fine = lambda kind=list: kind(done(*(event("changed", host) for host in hosts)))
script = {"base.yml": fine(), "slow.yml": fine(Slow), "workers.yml": fine()}
world = World(plan, script)
Install.plan = lambda self, _site, observation: world.install_plan(self, observation)
sys.argv[1:] = ["apply", "--site", site, "--yes"]
main(world)
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(tmp_path / "cluster")


def command(site: Path, seconds: float) -> list[str]:
    return [sys.executable, "-c", RUN, str(site), str(seconds)]


def environment() -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join((os.getcwd(), *sys.path)), "TERM": "xterm"}  # noqa: PTH109


def closed_pipe() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.fixture
def nobody() -> Iterator[int]:
    """A descriptor to write to that nobody reads."""
    writer = closed_pipe()
    yield writer
    os.close(writer)


def report(site: Path) -> Mapping[str, object]:
    path = open_state(site).all_runs()[-1].report("json")
    assert path.is_file(), "no report was written"
    data = json.loads(path.read_text())
    assert isinstance(data, dict)
    return data


@pytest.mark.parametrize("both", [True, False])
def test_run_without_a_reader_goes_on_to_its_end(site: Path, nobody: int, both: bool) -> None:
    done = subprocess.run(
        command(site, 0),
        stdin=subprocess.DEVNULL,
        stdout=nobody,
        stderr=nobody if both else subprocess.PIPE,
        env=environment(),
        timeout=180,
        check=False,
    )
    assert done.returncode == ExitCode.OK
    assert report(site)["ok"] is True
    assert b"Error" not in (done.stderr or b"")


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come"
        time.sleep(0.05)


def test_closed_terminal_ends_the_run_like_ctrl_c(site: Path) -> None:
    terminal, mine = pty.openpty()
    child = subprocess.Popen(
        command(site, 30), stdin=mine, stdout=mine, stderr=mine, env=environment(), start_new_session=True
    )
    try:
        os.close(mine)
        wait_for(site / "began")
        os.close(terminal)
        child.send_signal(signal.SIGHUP)
        assert child.wait(timeout=180) == ExitCode.INTERRUPTED
    finally:
        child.kill()
        child.wait()
    assert report(site)["exit_code"] == ExitCode.INTERRUPTED
    assert '"what": "run_finished"' in open_state(site).journal.read_text()


def test_second_ctrl_c_does_not_take_the_report_away(site: Path) -> None:
    child = subprocess.Popen(
        command(site, 30), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(), text=True
    )
    try:
        wait_for(site / "began")
        for _ in range(3):
            child.send_signal(signal.SIGINT)
            time.sleep(0.02)
        out, _ = child.communicate(timeout=180)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == ExitCode.INTERRUPTED
    assert report(site)["exit_code"] == ExitCode.INTERRUPTED
    assert "report: " in out
