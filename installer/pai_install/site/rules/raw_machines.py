"""What can be said of the machines before their entries are known to be right.

Checks over several entries read these, so that they also find what is wrong beside an entry that is itself wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from pai_install.documents.document import Document, Entries, Items, Text
from pai_install.documents.problem import YamlPath


@dataclass(frozen=True, slots=True)
class Draft:
    """What can be said of an entry of machine-list before it is known to be right."""

    path: YamlPath
    entry: Entries

    def text(self, key: str) -> str | None:
        """The value of `key` when it is text."""
        value = self.entry.get(key)
        return str(value) if isinstance(value, Text) else None

    def flag(self, key: str) -> bool:
        """Whether `key` is given and means true."""
        return (self.text(key) or "").strip().lower() in {"true", "yes", "on"}


def drafts(layout: Document) -> list[Draft]:
    """The entries of machine-list that are mappings, in order."""
    machines = layout.content.get("machine-list")
    if not isinstance(machines, Items):
        return []
    return [Draft(("machine-list", index), entry) for index, entry in enumerate(machines) if isinstance(entry, Entries)]
