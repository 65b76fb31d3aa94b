"""The files of a diff from modules and kubectl, with line counts. Pure.

The content of pai-install's own programs is omitted, because it does not help an administrator and hides the rest.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

_LONGEST = 400  # lines of one difference
_LONGEST_COMPARED = 4000  # lines of a file; comparing takes time with the square of them
_PROGRAMS = (".py", ".sh")
# a program in a ConfigMap: its key, or its first line; and the one whose later hunks show neither
_PROGRAM_LINE = re.compile(r"[ +-] *(#!/|[\w.-]+\.(py|sh): )")
_PROGRAM_OBJECT = "v1.ConfigMap.pai-hived.hived-bridge"


@dataclass(frozen=True, slots=True)
class LineCount:
    """The lines that a file, an object, or a folder of programs gains and loses. path: "" where it has no name."""

    path: str
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One file of a difference. shown: its lines for a reader."""

    count: LineCount
    shown: tuple[str, ...]


def files_of(diff: Mapping[str, Any]) -> Iterator[ChangedFile]:
    """Yields the files of one difference in a module's result, none where nothing changes."""
    if isinstance(diff.get("prepared"), str):
        yield from map(_object, _sections(diff["prepared"].splitlines()))
        return
    before, after = (_text(diff.get(side)) for side in ("before", "after"))
    if before != after:
        yield _file(diff, before, after)


def _file(diff: Mapping[str, Any], before: str, after: str) -> ChangedFile:
    path = _path(diff)
    if max(before.count("\n"), after.count("\n")) > _LONGEST_COMPARED:
        count = LineCount(path, after.count("\n"), before.count("\n"))
        return ChangedFile(count, (f"... more than {_LONGEST_COMPARED} lines, which are not compared here",))
    old, new = str(diff.get("before_header") or "before"), str(diff.get("after_header") or "after")
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), old, new, lineterm=""))
    program = path.endswith(_PROGRAMS) or (after or before).startswith("#!")
    return _changed(path, lines[:2], lines[2:], program=program)


def _object(section: list[str]) -> ChangedFile:
    """One object of `kubectl diff`, or the lines of a module that names no file."""
    body = next((number for number, line in enumerate(section, start=1) if line.startswith("+++ ")), 0)
    path = PurePosixPath(section[body - 1].split("\t")[0].removeprefix("+++ ")).name if body else ""
    program = path == _PROGRAM_OBJECT or any(map(_PROGRAM_LINE.match, section[body:]))
    return _changed(path, section[:body], section[body:], program=program)


def _changed(path: str, head: list[str], lines: list[str], *, program: bool) -> ChangedFile:
    # Without the head of the diff, whose lines begin with the same signs.
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    if program:
        folder = PurePosixPath(path).parent if path.endswith(_PROGRAMS) else path
        return ChangedFile(LineCount(str(folder), added, removed), (*head, "(a program of pai-install)"))
    return ChangedFile(LineCount(path, added, removed), tuple(_cut([*head, *lines])))


def _sections(lines: list[str]) -> Iterator[list[str]]:
    """Yields the sections of a diff of several objects, or the whole diff if it names none."""
    section: list[str] = []
    for line in lines:
        if line.startswith("diff ") and section:
            yield section
            section = []
        section.append(line)
    if section:
        yield section


def _path(diff: Mapping[str, Any]) -> str:
    """Returns the path of the file. after_header may be a temporary one."""
    state = diff.get("before")
    named = state.get("path") if isinstance(state, Mapping) else diff.get("before_header") or diff.get("after_header")
    return str(named or "")


def _cut(lines: list[str]) -> Iterator[str]:
    yield from lines[:_LONGEST]
    if len(lines) > _LONGEST:
        yield f"... {len(lines) - _LONGEST} more lines"


def _text(value: object) -> str:
    if isinstance(value, Mapping):  # the state of a file: owner, mode and so on
        return "\n".join(f"{key}: {value[key]}" for key in sorted(value))
    return "" if value is None else str(value)
