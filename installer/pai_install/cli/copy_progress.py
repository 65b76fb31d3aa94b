"""The progress of a copy: in place on a terminal, else a line every 30 seconds."""

from __future__ import annotations

import sys
import time

from pai_install.app.frontend import CopyProgress, Event
from pai_install.cli.output import echo, echo_in_place

_LINE_S, _WIDTH = 30.0, 30


class CopyLine:
    """The line of one terminal."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._open = False

    def notify(self, event: Event) -> None:
        """Shows the amount so far. Any other event ends the line."""
        if isinstance(event, CopyProgress):
            self._show(event)
        elif self._open:
            echo(err=True)
            self._open = False

    def _show(self, event: CopyProgress) -> None:
        from pai_install.preflight.model import size_text  # noqa: PLC0415 - few verbs copy

        line = f"copied so far: {size_text(event.size)}" + ("" if event.files is None else f", {event.files} files")
        if event.total:
            line += f" of {size_text(event.total)} {_bar(event.size / event.total)}"
        if sys.stderr.isatty():
            echo_in_place(line)
            self._open = True
        elif time.monotonic() - self._last > _LINE_S:
            echo(line, err=True)
            self._last = time.monotonic()


def _bar(part: float) -> str:
    """A bar of the part that is done."""
    done = round(min(part, 1) * _WIDTH)
    return f"[{'#' * done}{'.' * (_WIDTH - done)}]"
