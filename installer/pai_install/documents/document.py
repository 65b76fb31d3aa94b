"""A YAML file as plain containers with scalars as text and their places.

Scalars stay text on purpose: only the field that reads a scalar knows its type, so `1.36`, `010`, `yes`, and `"true"`
reach it as written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pai_install.documents.problem import Problem, Severity, YamlPath, dotted, printable


class Mark(NamedTuple):
    """A place in a file, counted from 1."""

    line: int
    column: int


class Text(str):
    """A scalar as it was written. plain: without quotes. vault: an ansible-vault string."""

    __slots__ = ("mark", "path", "plain", "vault")
    mark: Mark
    path: YamlPath
    plain: bool
    vault: bool


class Overruled(NamedTuple):
    """An entry that does not count. by: where the same key is given again."""

    path: YamlPath
    mark: Mark
    by: Mark


class Entries(dict[str, Any]):
    """A mapping that knows where it stands."""

    mark: Mark
    path: YamlPath


class Items(list[Any]):
    """A list that knows where it stands."""

    mark: Mark
    path: YamlPath


@dataclass
class Document:
    """The content of a file with the places of all entries.

    file, folder: name in problems, and base of relative paths in the file.
    root: Entries, or None for a file without content (`problems` may contain the cause).
    marks: path -> the place of the key, or of the item in a list.
    overruled: duplicate entries, if they are no error (see read_document).
    of: kind of the file for messages and codes of problems: a site or a job.
    """

    file: str
    folder: Path = Path()
    root: Entries | None = field(default=None, repr=False)  # may hold secrets
    lines: tuple[str, ...] = field(default=(), repr=False)
    marks: dict[YamlPath, Mark] = field(default_factory=dict, repr=False)
    problems: list[Problem] = field(default_factory=list)
    overruled: list[Overruled] = field(default_factory=list)
    of: Literal["site", "job"] = "site"

    @property
    def content(self) -> Entries:
        """The root, or an empty mapping when there is none."""
        return Entries() if self.root is None else self.root

    def at(self, path: YamlPath) -> object:
        """Returns the value at `path`, or None."""
        value: object = self.root
        for part in path:
            if isinstance(value, Entries) and part in value:
                value = value[str(part)]
            elif isinstance(value, Items) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                return None
        return value

    def mark(self, path: YamlPath) -> Mark:
        """The place of `path`, or of its nearest parent that exists."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.marks:
                return self.marks[path[:length]]
        return Mark(1, 1)

    def add(
        self,
        path: YamlPath,
        code: str,
        message: str,
        remedy: str = "",
        *,
        severity: Severity = "error",
        mark: Mark | None = None,
    ) -> None:
        """Notes a problem at `path`, placed at `mark` where that is more exact. code: as a site has it."""
        line, column = mark or self.mark(path)
        code = code.replace("site.", f"{self.of}.", 1)
        self.problems.append(
            Problem(self.file, line, column, dotted(path), severity, code, printable(message), printable(remedy))
        )
