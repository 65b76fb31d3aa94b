"""The journal survives a crash at any point and says where the run was."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pai_install.report.notices import RunStarted
from pai_install.run.journal import Interrupted, Journal, interrupted_run


def clock() -> datetime:
    return datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_run_that_ended_leaves_nothing_open(tmp_path: Path, kit: Any) -> None:
    path = tmp_path / "state" / "journal.jsonl"
    plan = replace(kit.plan(kit.phase("base", "one", "two")), operation="node drain")
    with Journal(path, "r1", clock) as journal:
        kit.run(plan, kit.engine({"base.yml": kit.fine("one", "two")}), [journal])
    assert interrupted_run(path, print) is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    told = lines(path)
    assert [line["what"] for line in told] == [
        "run_started", "phase_started", "host_finished", "host_finished", "phase_finished", "run_finished",
    ]  # fmt: skip
    assert told[0] == {
        "at": "2026-03-01T12:00:00+00:00", "run": "r1", "what": "run_started", "operation": "node drain",
        "phases": ["base"],
    }  # fmt: skip
    assert told[2]["status"] == "changed"
    assert told[-1]["exit_code"] == 0


def test_ctrl_c_is_an_end_that_was_told(tmp_path: Path, kit: Any) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, "r1") as journal:
        kit.run(kit.plan(kit.phase("base", "one")), kit.engine({"base.yml": [KeyboardInterrupt()]}), [journal])
    assert interrupted_run(path, print) is None
    assert lines(path)[-1]["exit_code"] == 130


def test_no_journal_is_no_interruption(tmp_path: Path) -> None:
    assert interrupted_run(tmp_path / "journal.jsonl", print) is None


def record(*words: str) -> str:
    """Journal lines in short: start, phase:NAME:HOSTS, host:NAME, end:PHASE, finish."""
    out = []
    for word in words:
        name, *rest = word.split(":")
        kinds: dict[str, dict[str, Any]] = {
            "start": {"what": "run_started"},
            "phase": {"what": "phase_started", "phase": rest[:1] and rest[0], "hosts": rest[1:]},
            "host": {"what": "host_finished", "phase": "p", "host": rest[:1] and rest[0]},
            "end": {"what": "phase_finished", "phase": rest[:1] and rest[0]},
            "finish": {"what": "run_finished"},
        }
        out.append(json.dumps({"run": "r1", **kinds[name]}))
    return "\n".join(out) + "\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("start",), Interrupted("r1")),
        (("start", "phase:p:a:b"), Interrupted("r1", "p", ("a", "b"))),
        (("start", "phase:p:a:b", "host:a"), Interrupted("r1", "p", ("b",))),
        (("start", "phase:p:a", "host:a", "end:p"), Interrupted("r1", phases_done=("p",))),
        (("start", "phase:p:a", "end:p", "phase:q:b"), Interrupted("r1", "q", ("b",), ("p",))),
        (("start", "finish"), None),
        (("start", "phase:p:a", "start", "finish"), None),
        (("start", "finish", "start", "phase:p:a"), Interrupted("r1", "p", ("a",))),
        (("phase:p:a",), None),
    ],
)
def test_place_of_the_interruption(tmp_path: Path, words: tuple[str, ...], expected: Interrupted | None) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(record(*words))
    assert interrupted_run(path, print) == expected


@pytest.mark.parametrize("damage", ['{"what": "run_fin', "\0\0\0\0", "[]", "null", '"text"', "\udcff"])
def test_damaged_line_is_passed_over(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(record("start", "phase:p:a") + damage + "\n", errors="surrogateescape")
    assert interrupted_run(path, print) == Interrupted("r1", "p", ("a",))


def test_new_run_after_a_torn_line_is_read(tmp_path: Path, kit: Any) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(record("start", "phase:p:a") + '{"what": "host_fin')
    with Journal(path, "r2") as journal:
        journal.notice(RunStarted(()))
        assert interrupted_run(path, print) == Interrupted("r2")
        kit.run(kit.plan(), kit.engine({}), [journal])
    assert interrupted_run(path, print) is None


def test_journal_does_not_grow_for_ever(tmp_path: Path, kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_install.run.journal._LONGEST_BYTES", 1000)
    path = tmp_path / "journal.jsonl"
    for number in range(20):
        with Journal(path, f"r{number}") as journal:
            kit.run(kit.plan(), kit.engine({}), [journal])
    assert path.stat().st_size < 1500
    assert lines(path)[-1]["run"] == "r19"


def test_journal_outside_its_context_is_a_bug(tmp_path: Path, kit: Any) -> None:
    with pytest.raises(RuntimeError, match="context manager"):
        kit.run(kit.plan(), kit.engine({}), [Journal(tmp_path / "j", "r1")])


KILLED = """
import sys, time
from pathlib import Path
from pai_install.run.journal import Journal
from pai_install.report.model import HostStatus
from pai_install.report.notices import HostFinished, PhaseStarted, RunStarted
with Journal(Path(sys.argv[1]), "r9") as journal:
    journal.notice(RunStarted((("base", ("a", "b")),)))
    journal.notice(PhaseStarted("base", "Base", ("a", "b"), 1, 1))
    journal.notice(HostFinished("base", "a", HostStatus.OK))
    print("ready", flush=True)
    time.sleep(60)
"""


def test_journal_of_a_killed_process_says_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert interrupted_run(path, print) == Interrupted("r9", "base", ("b",))
