"""The journal of a run: its started and completed steps, on disk at once, so that a crash leaves a trace.

The journal never decides the next step: the next run observes the machines again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from pai_install.report.notices import (
    HostFinished,
    Notice,
    PhaseFinished,
    PhaseStarted,
    RunFinished,
    RunStarted,
)
from pai_install.system.files import append_secret, naming
from pai_install.system.state_file import MISSING, reading

_LONGEST_BYTES = 8 << 20
# characters of one line
_LONGEST_LINE = 4 << 20


@dataclass(frozen=True, slots=True)
class Interrupted:
    """An interrupted run: its start, its phase, and the hosts with incomplete work in that phase.

    operation: name of its operation. phases_done: names of completed phases. phase: "" if the run stopped between two.
    """

    run: str
    phase: str = ""
    hosts: tuple[str, ...] = ()
    phases_done: tuple[str, ...] = ()
    operation: str = ""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Journal:
    """Appends one JSON line per step, synced at the start and end of a phase. A context manager and an Observer.

    run: the name of the run.
    """

    path: Path
    run: str
    now: Callable[[], datetime] = _now
    _file: TextIO | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        torn = _make_room(self.path)
        self._file = append_secret(self.path)
        # A crash can cut the last line. A line end keeps the damage from the next line.
        if torn:
            self._file.write("\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            with naming(self.path):  # what could not be written is tried once more
                self._file.close()
            self._file = None

    def notice(self, notice: Notice) -> None:
        """Writes down a notice that begins or ends something."""
        match notice:
            case RunStarted(phases=phases, operation=operation):
                self._write("run_started", operation=operation, phases=[name for name, _ in phases])
            case PhaseStarted():
                self._write("phase_started", phase=notice.name, hosts=list(notice.hosts))
            case HostFinished():
                # Not synced: a thousand machines would wait for the disk. A lost line only names one machine too many.
                self._write("host_finished", sync=False, phase=notice.phase, host=notice.host,
                            status=notice.status.value)  # fmt: skip
            case PhaseFinished(phase=phase):
                self._write("phase_finished", phase=phase.name)
            case RunFinished(outcome=outcome):
                # Ctrl-C is an interruption too, but one that has been told
                self._write("run_finished", exit_code=int(outcome.exit_code))
            case _:
                return

    def _write(self, what: str, *, sync: bool = True, **data: object) -> None:
        if self._file is None:
            raise RuntimeError("Journal is a context manager: use it in a with statement")
        line = {"at": self.now().isoformat(timespec="seconds"), "run": self.run, "what": what, **data}
        with naming(self.path):
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
            if sync:
                os.fsync(self._file.fileno())


def _make_room(path: Path) -> bool:
    """Rotates a long journal. Returns whether a crash truncated the last line."""
    if not path.exists() or not (size := path.stat().st_size):
        return False
    if size > _LONGEST_BYTES:
        path.replace(path.with_suffix(".old.jsonl"))
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def interrupted_run(path: Path, notify: Callable[[str], None]) -> Interrupted | None:
    """Returns the last run in the journal if it never ended, or None. Raises PaiError if it cannot be read.

    say: takes a line about damaged lines, which are ignored. A crash may have truncated the last one.
    """
    state: Interrupted | None = None
    damaged = 0
    try:
        with reading(path, "remove it"), path.open(encoding="utf-8", errors="replace") as file:
            # A damaged file may be one endless line.
            for text in iter(lambda: file.readline(_LONGEST_LINE), ""):
                try:
                    state = _advance(state, _parsed(text))
                except (ValueError, TypeError, RecursionError):
                    # Only the last line can lack its end. A crash cut it, which is no damage to report.
                    damaged += text.endswith("\n")
    except MISSING:
        return None
    if damaged:
        notify(f"ignored: {damaged} damaged line(s) of {path}. If they come back, remove the file")
    return state


def _parsed(text: str) -> Mapping[str, Any]:
    line = json.loads(text)
    if not isinstance(line, dict):
        raise TypeError("it is no step of a run")
    return line


def _advance(state: Interrupted | None, line: Mapping[str, Any]) -> Interrupted | None:
    what = line.get("what")
    if what == "run_started":
        return Interrupted(run=str(line.get("run", "")), operation=str(line.get("operation", "")))
    if what == "run_finished" or state is None:
        return None
    phase = str(line.get("phase", ""))
    if what == "phase_started":
        return replace(state, phase=phase, hosts=tuple(map(str, line.get("hosts", ()))))
    if what == "host_finished":
        left = tuple(host for host in state.hosts if host != line.get("host"))
        return replace(state, hosts=left)
    if what == "phase_finished":
        return replace(state, phase="", hosts=(), phases_done=(*state.phases_done, phase))
    return state
