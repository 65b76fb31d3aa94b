"""File diffs from check-mode results. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pai_install.report.changed_files import LineCount, files_of
from pai_install.report.notices import Notice, TaskFinished
from pai_install.system.words import shortened

_SHOWN_HOSTS = 10
_PASSING = re.compile(r"diff |--- |\+\+\+ |[ +-] *(uid|creationTimestamp|resourceVersion|generation): ")


@dataclass(frozen=True, slots=True)
class FileChange:
    """One planned change of a task on a host. `diff` is a unified diff, or "".

    digest: of the whole diff, including parts too long to show. Equal digests mean the same change. counts: of each
    file that the task would change.
    """

    phase: str
    host: str
    task: str
    diff: str
    digest: str = ""
    counts: tuple[LineCount, ...] = ()


class ChangeCollector:
    """An Observer that collects the changes of a check run."""

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
    """Returns the changes as text. Hosts with the same change share it."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for change in changes:
        groups.setdefault((change.phase, change.task, change.diff), []).append(change.host)
    lines: list[str] = []
    for (phase, task, diff), hosts in groups.items():
        lines.append(f"{phase}: {task} on {', '.join(hosts)}")
        lines.extend(f"    {line}" for line in diff.splitlines())
    return "\n".join(lines) + "\n" if lines else ""


def changes_summary(changes: Iterable[FileChange]) -> str:
    """Returns one line for each changed file with its lines and machines, and one for each task without a file."""
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
    """Returns path -> "+12 -3". The programs of a folder are counted together."""
    totals: dict[str, tuple[int, int]] = {}
    for count in counts:
        added, removed = totals.get(count.path, (0, 0))
        totals[count.path] = (added + count.added, removed + count.removed)
    return {path: f"+{added} -{removed}" if added or removed else "" for path, (added, removed) in totals.items()}


def other_changes(saved: Sequence[Mapping[str, Any]], now: Iterable[FileChange]) -> tuple[str, ...]:
    """Returns the changes that only one of the two lists has, as sentences."""
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
    # A task with a loop has one result for each item, beside the result of the whole.
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
    """Returns the lines without random content: names of temporary files, generated values of the API server."""
    # The API server sets these fields again at each try. They would make every saved plan look outdated.
    return [line for line in prepared.splitlines() if not _PASSING.match(line)]
