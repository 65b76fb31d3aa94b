"""The account of an old site: the outcome of every key, entry, and file.

A book contains every leaf of a file from its opening. Readers take leaves and record an outcome for each. The remaining
leaves are dropped by name. So the sum is always the whole input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from pai_install.documents.document import Document, Entries, Items
from pai_install.documents.problem import YamlPath, dotted, printable


class Fate(StrEnum):
    """The outcome of an input."""

    KEPT = "carried over"
    REPLACED = "replaced"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class AccountLine:
    """One line of the account.

    file, line, path: original place, or line 0 and path "" for a whole file.
    text: its new place, its replacement, or the reason for its removal.
    kind: the path without numbers and names of machine types, to count similar entries.
    """

    file: str
    line: int
    path: str
    outcome: Fate
    text: str
    kind: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        named = f"{where}: {self.path}" if self.path else where
        return f"{named}: {_SENTENCES[self.outcome]}{self.text}"


_SENTENCES = {Fate.KEPT: "now ", Fate.REPLACED: "replaced: ", Fate.DROPPED: "dropped: "}


@dataclass
class Book:
    """The account of one file. waiting: the leaves that were not taken yet, each with its line."""

    file: str
    document: Document = field(default_factory=lambda: Document(""))
    waiting: dict[YamlPath, int] = field(default_factory=dict)
    entries: list[AccountLine] = field(default_factory=list)

    def open(self, document: Document) -> None:
        """Adds every leaf of a file. A duplicate key is closed at once."""
        for path, mark, by in document.overruled:
            why = f"the key is given again in line {by.line}, and OpenPAI took the last"
            self._close(path, mark.line, Fate.DROPPED, why)
        self.document = document
        self.waiting.update(leaves(document.content, document))

    def keep(self, path: YamlPath, where: str) -> None:
        """A leaf, or all below a path, now is at `where` of the new site."""
        self._take(path, Fate.KEPT, where)

    def replace(self, path: YamlPath, what: str) -> None:
        """Something of another form stands for it."""
        self._take(path, Fate.REPLACED, what)

    def drop(self, path: YamlPath, why: str) -> None:
        """There is nothing for it."""
        self._take(path, Fate.DROPPED, why)

    def whole(self, outcome: Fate, text: str) -> None:
        """Records the outcome of the file itself."""
        self.entries.append(AccountLine(self.file, 0, "", outcome, text, ""))

    def _take(self, path: YamlPath, outcome: Fate, text: str) -> None:
        below = (leaf for leaf, _ in leaves(self.document.at(path), self.document, path))
        for leaf in [path] if path in self.waiting else below:
            # A leaf that a reader has taken is closed. So each leaf is in the account once.
            if leaf in self.waiting:
                self._close(leaf, self.waiting.pop(leaf), outcome, text)

    def _close(self, path: YamlPath, line: int, outcome: Fate, text: str) -> None:
        self.entries.append(AccountLine(self.file, line, dotted(path), outcome, printable(text), _kind(path)))

    def close(self) -> list[AccountLine]:
        """Returns the complete account of the file in the order of its lines. The remaining leaves are
        dropped by name.
        """
        for path in list(self.waiting):
            self.drop(path, "pai-install knows nothing of this name")
        return sorted(self.entries, key=lambda entry: entry.line)


def leaves(value: object, document: Document, path: YamlPath = ()) -> Iterator[tuple[YamlPath, int]]:
    """Yields the path and line of everything below a value that holds nothing else."""
    if isinstance(value, Entries | Items) and (value or path):
        inner = value.items() if isinstance(value, Entries) else enumerate(value)
        if value:
            for key, item in inner:
                yield from leaves(item, document, (*path, key))
        else:
            yield path, document.mark(path).line
    elif path:
        yield path, document.mark(path).line


def _kind(path: YamlPath) -> str:
    """Normalises ("machine-sku", "A", "os") to "machine-sku.*.os" and ("machine-list", 3, "zkid") to
    "machine-list[].zkid".
    """
    many = path[:1] == ("machine-sku",)
    named = ["*" if many and index == 1 else part for index, part in enumerate(path)]
    return dotted(tuple(0 if isinstance(part, int) else part for part in named)).replace("[0]", "[]")


def summary(entries: Iterable[AccountLine]) -> Iterator[tuple[str, str]]:
    """Yields replaced and dropped entries with their outcome, grouped by kind with a count."""
    counted: dict[tuple[str, str, str], int] = {}
    for entry in entries:
        if entry.outcome is not Fate.KEPT:
            why = entry.text if entry.outcome is Fate.DROPPED else f"replaced: {entry.text}"
            key = (entry.file, entry.kind, why)
            counted[key] = counted.get(key, 0) + 1
    for (file, kind, text), count in counted.items():
        what = f"{file}: {kind}" if kind else file
        yield f"{what} ({count} entries)" if count > 1 else what, text
