"""Ansible's own output, kept for debugging."""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from pai_install.redact import Redactor
from pai_install.system.files import append_secret
from pai_install.system.plain import plain_text

_TAIL_LINES = 30
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class RunLog:
    """Appends text to a file (0600) with secrets masked, and keeps the last lines. A context manager.

    path: None keeps only the last lines.
    """

    def __init__(self, path: Path | None, redactor: Redactor) -> None:
        self._path = path
        self._redactor = redactor
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = append_secret(self._path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def write(self, text: str) -> None:
        """Appends `text`, which may have several lines. Empty text has no effect."""
        if not text.strip():
            return
        clean = self._redactor.text(plain_text(_COLOURS.sub("", text))).rstrip("\n")
        self._tail.extend(clean.splitlines())
        if self._file is not None:
            self._file.write(f"{clean}\n")
            self._file.flush()

    def tail(self) -> str:
        """The last lines."""
        return "\n".join(self._tail)
