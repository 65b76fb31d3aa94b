"""File differences out of check-mode results; pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pai_install.report.changed_files import LineCount, files_of
from pai_install.report.notices import Notice, TaskFinished
from pai_install.system.words import shortened

_SHOWN_HOSTS = 10
_PASSING = re.compile(r"diff |--- |\+\+\+ |[ +-] *(uid|creationTimestamp|resourceVersion|generation): ")


@dataclass(frozen=True, slots=True)
class FileChange:
    """One thing that a task would change on a host; `diff` is a unified difference, empty if there is none.

    digest: of the whole difference, also of what is too long to be shown; equal digests mean the same change.
    counts: of each file that the task would change.
    """

    phase: str
    host: str
    task: str
    diff: str
    digest: str = ""
    counts: tuple[LineCount, ...] = ()

    def as_json(self) -> dict[str, str]:
        """The published form: one key per text."""
        return {name: value for name, value in asdict(self).items() if isinstance(value, str)}


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
            files = [file for one in _given(notice.result) for file in files_of(one)]
            diff = "\n".join(line for file in files for line in file.shown).strip("\n")
            digest = _digest(notice.result)
            counts = tuple(file.count for file in files)
            self._changes.append(FileChange(notice.phase, notice.host, notice.task, diff, digest, counts))


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


def changes_summary(changes: Iterable[FileChange]) -> str:
    """One line for each changed file, with its lines and machines; a task that names no file has a line of its own."""
    phases: dict[str, dict[tuple[str, str], list[str]]] = {}
    for change in changes:
        lines = _totals(change.counts) or {"": ""}
        for path, numbers in lines.items():
            hosts = phases.setdefault(change.phase, {}).setdefault((path or change.task, numbers), [])
            hosts.extend([change.host] if change.host not in hosts else [])
    shown: list[str] = []
    for phase, files in phases.items():
        shown.append(f"{phase}:")
        width = max(len(numbers) for _, numbers in files)
        shown.extend(
            f"  {numbers.ljust(width)}  {name} ({shortened(sorted(hosts), _SHOWN_HOSTS)})"
            for (name, numbers), hosts in files.items()
        )
    return "\n".join(shown) + "\n" if shown else ""


def _totals(counts: Iterable[LineCount]) -> dict[str, str]:
    """Path -> "+12 -3"; the programs of a folder count together."""
    totals: dict[str, tuple[int, int]] = {}
    for count in counts:
        added, removed = totals.get(count.path, (0, 0))
        totals[count.path] = (added + count.added, removed + count.removed)
    return {path: f"+{added} -{removed}" if added or removed else "" for path, (added, removed) in totals.items()}


def other_changes(saved: Sequence[Mapping[str, Any]], now: Iterable[FileChange]) -> tuple[str, ...]:
    """What would change now and is not among the saved changes, or the other way round, as sentences."""
    before = _digests((one["phase"], one["host"], one["task"], one["digest"]) for one in saved)
    after = _digests((one.phase, one.host, one.task, one.digest) for one in now)
    sentences = []
    for key in dict.fromkeys((*before, *after)):
        if before.get(key) != after.get(key):
            phase, host, task = key
            what = "would no longer change anything" if key not in after else "would change something else"
            what = what if key in before else "would change something now"
            sentences.append(f"{phase} on {host}: task {task} {what}")
    return tuple(sentences)


def _digests(rows: Iterable[tuple[str, str, str, str]]) -> dict[tuple[str, str, str], list[str]]:
    found: dict[tuple[str, str, str], list[str]] = {}
    for phase, host, task, digest in rows:
        found.setdefault((phase, host, task), []).append(digest)
    return found


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
