"""Logs of agents: JSON lines on standard error. They contain no body, no token, and no foreign text as it is."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, TextIO

# a warning that repeats is written again after so long
REPEAT_S = 600
_MAX_WARNINGS = 1000
_MAX_FIELD = 2000


class Log:
    """Writes one line per event to a stream, by default standard error. Safe for threads."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        # the journal reads the priority of a line from this mark
        self._mark = "<4>" if stream is None and "JOURNAL_STREAM" in os.environ else ""
        self._lock = threading.Lock()
        self._warned: dict[str, float] = {}

    def __call__(self, event: str, **fields: Any) -> None:
        """Writes {"time": ..., "event": EVENT, ...}. A broken stream is ignored."""
        self._write("", event, fields)

    def warn(self, event: str, **fields: Any) -> None:
        """Writes a warning, unless the same warning was written in the last REPEAT_S seconds."""
        key, now = repr((event, fields)), time.monotonic()
        with self._lock:
            if now - self._warned.get(key, -REPEAT_S) < REPEAT_S:
                return
            if len(self._warned) >= _MAX_WARNINGS:
                # Texts of errors may contain names of users' objects. Without a bound, memory would grow with them.
                self._warned.clear()
            self._warned[key] = now
        self._write(self._mark, event, fields)

    def _write(self, mark: str, event: str, fields: dict[str, Any]) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        short = {name: _short(value) for name, value in fields.items()}
        line = mark + json.dumps({"time": moment, "event": _short(event), **short}, default=str)
        with self._lock:
            try:
                print(line, file=self._stream or sys.stderr, flush=True)
            except (OSError, ValueError):
                return


def _short(value: Any) -> Any:
    return value[:_MAX_FIELD] if isinstance(value, str) else value


@contextmanager
def guarded(warn: Callable[[str], None], name: str) -> Iterator[None]:
    """Turns any error into one line of the log, so that a bad object affects no other object."""
    try:
        yield
    except Exception as error:
        warn(f"cannot process {name}: {type(error).__name__}: {error}")
