"""Every task that ended, as JSON lines: the raw material of a report, secrets already masked."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from pai_install.report.notices import Notice, TaskFinished
from pai_install.system.files import append_secret, naming


class EventLog:
    """Writes each TaskFinished to a file (0600). A context manager and an Observer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        self._file = append_secret(self._path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            with naming(self._path):  # what could not be written is tried once more
                self._file.close()
            self._file = None

    def notice(self, notice: Notice) -> None:
        """Writes a finished task and ignores other notices."""
        if isinstance(notice, TaskFinished) and self._file is not None:
            with naming(self._path):
                self._file.write(json.dumps(asdict(notice), default=str) + "\n")
                self._file.flush()
