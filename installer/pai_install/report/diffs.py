"""File differences out of check-mode results; pure."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pai_install.report.notices import Notice, TaskFinished

_LONGEST = 400  # lines of one difference
_LONGEST_COMPARED = 4000  # lines of a file; comparing takes time with the square of them
_PASSING = re.compile(r"diff |--- |\+\+\+ |[ +-] *(uid|creationTimestamp|resourceVersion|generation): ")


@dataclass(frozen=True, slots=True)
class FileChange:
    """One thing that a task would change on a host; `diff` is a unified difference, empty if there is none.

    digest: of the whole difference, also of what is too long to be shown; equal digests mean the same change.
    """

    phase: str
    host: str
    task: str
    diff: str
    digest: str = ""

    def as_json(self) -> dict[str, str]:
        """One key per field."""
        return asdict(self)


class ChangeCollector:
    """An Observer that keeps what a check run would change."""

    def __init__(self) -> None:
        self._changes: list[FileChange] = []

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """In the order in which the tasks ended."""
        return tuple(self._changes)

    def notice(self, notice: Notice) -> None:
        """Keeps a task that would change something."""
        if isinstance(notice, TaskFinished) and notice.outcome == "changed":
            diff = "\n".join(_diffs(notice.result)).strip("\n")
            self._changes.append(FileChange(notice.phase, notice.host, notice.task, diff, _digest(notice.result)))


def changes_text(changes: Iterable[FileChange]) -> str:
    """The changes as text; hosts with the very same change share it."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for change in changes:
        groups.setdefault((change.phase, change.task, change.diff), []).append(change.host)
    lines: list[str] = []
    for (phase, task, diff), hosts in groups.items():
        lines.append(f"{phase}: {task} on {', '.join(hosts)}")
        lines.extend(f"    {line}" for line in diff.splitlines())
    return "\n".join(lines) + "\n" if lines else ""


def other_changes(saved: Sequence[Mapping[str, Any]], now: Iterable[FileChange]) -> tuple[str, ...]:
    """What would change now and is not among the saved changes, or the other way round, as sentences."""
    before = _digests((one["phase"], one["host"], one["task"], one["digest"]) for one in saved)
    after = _digests((one.phase, one.host, one.task, one.digest) for one in now)
    sentences = []
    for key in dict.fromkeys((*before, *after)):
        if before.get(key) != after.get(key):
            phase, host, task = key
            what = "would change nothing any more" if key not in after else "would change something else"
            what = what if key in before else "would change something now"
            sentences.append(f"{phase} on {host}: task {task} {what}")
    return tuple(sentences)


def _digests(rows: Iterable[tuple[str, str, str, str]]) -> dict[tuple[str, str, str], list[str]]:
    found: dict[tuple[str, str, str], list[str]] = {}
    for phase, host, task, digest in rows:
        found.setdefault((phase, host, task), []).append(digest)
    return found


def _diffs(result: Mapping[str, Any]) -> Iterator[str]:
    for diff in _given(result):
        yield from _one(diff)


def _given(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    items = result.get("results")
    for part in (result, *(items if isinstance(items, list) else ())):
        diff = part.get("diff") if isinstance(part, Mapping) else None
        for one in diff if isinstance(diff, list) else (diff,):
            if isinstance(one, Mapping):
                yield one


def _digest(result: Mapping[str, Any]) -> str:
    # after_header may be a temporary file's name
    lasting = [
        {
            key: _lasting(str(value)) if key == "prepared" else value
            for key, value in diff.items()
            if key != "after_header"
        }
        for diff in _given(result)
    ]
    return hashlib.sha256(json.dumps(lasting, sort_keys=True, default=str).encode()).hexdigest()


def _lasting(prepared: str) -> list[str]:
    """The lines without those that differ from look to look: names of temporary files, what the API server makes up."""
    return [line for line in prepared.splitlines() if not _PASSING.match(line)]


def _one(diff: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(diff.get("prepared"), str):
        yield from _cut(diff["prepared"].splitlines())
        return
    before, after = (_text(diff.get(side)) for side in ("before", "after"))
    if before == after:
        return
    if max(before.count("\n"), after.count("\n")) > _LONGEST_COMPARED:
        yield f"... more than {_LONGEST_COMPARED} lines, which are not compared here"
        return
    yield from _cut(
        list(
            difflib.unified_diff(
                before.splitlines(),
                after.splitlines(),
                str(diff.get("before_header") or "before"),
                str(diff.get("after_header") or "after"),
                lineterm="",
            )
        )
    )


def _cut(lines: list[str]) -> Iterator[str]:
    yield from lines[:_LONGEST]
    if len(lines) > _LONGEST:
        yield f"... {len(lines) - _LONGEST} more lines"


def _text(value: object) -> str:
    if isinstance(value, Mapping):  # the state of a file: owner, mode and so on
        return "\n".join(f"{key}: {value[key]}" for key in sorted(value))
    return "" if value is None else str(value)
