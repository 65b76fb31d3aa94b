"""Every task that ended, as JSON lines: the raw material of a report, secrets already masked."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from pai_install.report.notices import Notice, TaskFinished


class EventLog:
    """Writes each TaskFinished to a file (0600); a context manager, an Observer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._file = os.fdopen(descriptor, "a", encoding="utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def notice(self, notice: Notice) -> None:
        """Writes a finished task; passes over everything else."""
        if isinstance(notice, TaskFinished) and self._file is not None:
            self._file.write(json.dumps(asdict(notice), default=str) + "\n")
            self._file.flush()
