"""Use case of logs: reads journals, static pods, pods of add-ons, and jobs, several of them in parallel."""

from __future__ import annotations

import queue
import re
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from pai_install.app.context import App
from pai_install.app.frontend import LogLine
from pai_install.app.log_sources import LogSource, Window
from pai_install.app.log_targets import sources_of
from pai_install.errors import ExitCode, PaiError
from pai_install.site.selection import require_present
from pai_install.system.parameters import Parameter
from pai_install.system.plain import plain_text

DEFAULT_LINES = 200
_DURATION = re.compile(r"([0-9]{1,6})([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
# logs that are read at once, and lines that wait to be printed
_WIDTH, _WAITING = 32, 10_000


class ReadLogs(BaseModel):
    """A log and the part of it to print."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    target: Annotated[str, Parameter(positional=True, metavar="NODE|SERVICE|POD|JOB")]
    limit: Annotated[tuple[str, ...], Parameter(metavar="HOST,...", split=True)] = Field(
        (), description="Only logs of these machines."
    )
    since: Annotated[str, Parameter(metavar="TIME")] = Field(
        "", description="Only lines after this time: 30m, 2h, 1d, or 2026-11-05T08:00 (UTC)."
    )
    lines: int = Field(DEFAULT_LINES, ge=0, description="Number of last lines per log. 0 for all.")
    grep: Annotated[str, Parameter(metavar="PATTERN")] = Field(
        "", description="Only lines with a match of this regular expression."
    )
    follow: bool = Field(default=False, description="Print new lines until Ctrl-C.")
    raw: bool = Field(default=False, description="Do not escape control characters.")

    @field_validator("grep")
    @classmethod
    def _pattern(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        return pattern

    @field_validator("since")
    @classmethod
    def _time(cls, word: str) -> str:
        since_of(word, 0)
        return word


def since_of(word: str, now: float) -> float | None:
    """A time or a duration before now in seconds since 1970, None for "". Raises ValueError."""
    if not word:
        return None
    if found := _DURATION.fullmatch(word):
        return now - int(found[1]) * _UNITS[found[2]]
    try:
        moment = datetime.fromisoformat(word)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{word!r} is no time: write 30m, 2h, 1d, or 2026-11-05T08:00") from error


def read_logs(app: App, request: ReadLogs) -> ExitCode:
    """Sends the lines to the front end. A log that cannot be read stops no other one.

    Returns UNREACHABLE or STEP_FAILED if a log could not be read. Raises PaiError for an unknown target.
    """
    require_present(app.site, request.limit)
    # a filter drops lines, so the last ones are counted after it
    lines = 0 if request.grep and not request.follow else request.lines
    window = Window(lines, since_of(request.since, time.time()), request.follow)
    sources = [_filtered(it, request.grep) for it in sources_of(app, request.target, request.limit, window)]
    if not sources and request.limit:
        app.notify(f"{request.target} has no log on {', '.join(request.limit)}")
    printed = _followed(sources) if request.follow else _in_turn(sources, request.lines)
    code = ExitCode.OK
    try:
        for source, line in printed:
            if isinstance(line, PaiError):
                app.notify(line.message)
                code = max(code, line.exit_code)
            else:
                text = line if request.raw else plain_text(line)
                app.frontend.notify(LogLine(text, source.name, mixed=len(sources) > 1))
    except KeyboardInterrupt:
        if not request.follow:
            raise
    return code


def _filtered(source: LogSource, pattern: str) -> LogSource:
    if not pattern:
        return source
    search = re.compile(pattern).search
    return LogSource(source.name, lambda: (line for line in source.lines() if search(line)))


_Line = tuple[LogSource, str | PaiError]
# None: the end of the log
_Item = tuple[LogSource, str | PaiError | None]


def _started(sources: Sequence[LogSource], lines: queue.Queue[_Item]) -> None:
    """Reads the sources in threads that end with the program: Ctrl-C waits for none of them."""
    waiting: queue.SimpleQueue[LogSource] = queue.SimpleQueue()
    for source in sources:
        waiting.put(source)

    def work() -> None:
        while True:
            try:
                source = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                for line in source.lines():
                    lines.put((source, line))
            except PaiError as error:
                lines.put((source, error))
            finally:  # the reader of the lines waits for it
                lines.put((source, None))

    for _ in range(min(len(sources), _WIDTH)):
        threading.Thread(target=work, daemon=True).start()


def _followed(sources: Sequence[LogSource]) -> Iterator[_Line]:
    """Lines as they come."""
    # The bound stops readers that are faster than the terminal.
    lines: queue.Queue[_Item] = queue.Queue(_WAITING)
    _started(sources, lines)
    left = len(sources)
    while left:
        source, line = lines.get()
        left -= line is None
        if line is not None:
            yield source, line


def _in_turn(sources: Sequence[LogSource], most: int) -> Iterator[_Line]:
    """The last lines of each log together, in the order of the sources."""
    kept: dict[LogSource, deque[str | PaiError]] = {it: deque(maxlen=most or None) for it in sources}
    done: set[LogSource] = set()
    lines: queue.Queue[_Item] = queue.Queue(_WAITING)
    _started(sources, lines)
    for source in sources:
        while source not in done:
            found, line = lines.get()
            if line is None:
                done.add(found)
            else:
                kept[found].append(line)
        yield from ((source, line) for line in kept.pop(source))
