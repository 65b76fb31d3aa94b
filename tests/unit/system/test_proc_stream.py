from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pai_install.errors import ExitCode
from pai_install.system.proc import run, spawn, stream
from tests.errors import raises


def shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


def test_lines_of_both_streams_come_as_they_are_written(tmp_path: Path) -> None:
    seen: list[tuple[str, bool]] = []
    done = tmp_path / "done"
    script = f"echo one; echo two >&2; sleep 0.2; touch {done}; echo three"
    stream(shell(script), lambda line: seen.append((line, done.exists())))
    assert [line for line, _ in seen] == ["one", "two", "three"]
    assert seen[0] == ("one", False)


def test_the_program_runs_where_and_with_what_it_is_told(tmp_path: Path) -> None:
    seen: list[str] = []
    stream(shell("pwd; echo $COLOUR"), seen.append, cwd=tmp_path, env={"COLOUR": "red"})
    assert seen == [str(tmp_path), "red"]


def test_a_failure_shows_the_command_and_its_last_lines() -> None:
    with raises("program-failed", "/bin/sh", "3") as failed:
        stream(shell("seq 100; exit 3"), lambda _: None)
    lines = failed.value.details.splitlines()
    assert lines[0] == "$ /bin/sh -c seq 100; exit 3"
    assert lines[1:] == [str(number) for number in range(61, 101)]


@pytest.mark.parametrize(
    "start",
    [run, lambda words: stream(words, lambda _: None), lambda words: spawn(words, env={}, log=Path("/dev/null"))],
    ids=["run", "stream", "spawn"],
)
def test_a_missing_program_is_something_this_box_lacks(start: Callable[[list[str]], object]) -> None:
    with raises("program-missing", "no-such-program") as caught:
        start(["no-such-program"])
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED
    assert caught.value.remedy


def test_bytes_that_are_not_text_do_no_harm() -> None:
    seen: list[str] = []
    stream(shell(r"printf '\377\n'"), seen.append)
    assert seen == ["\N{REPLACEMENT CHARACTER}"]


def test_the_program_ends_when_the_reader_gives_up() -> None:
    started: list[int] = []

    def give_up(line: str) -> None:
        started.append(int(line))
        raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        stream(shell("echo $$; exec sleep 60"), give_up)
    assert time.monotonic() - begun < 30
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


def test_the_program_cannot_read_the_terminal() -> None:
    seen: list[str] = []
    stream(shell("cat; echo end"), seen.append)
    assert seen == ["end"]
