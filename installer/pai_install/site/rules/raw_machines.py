"""The machines before the validation of their entries.

Checks over several entries read these, so that they also find problems next to an invalid entry.
"""

from __future__ import annotations

from dataclasses import dataclass

from pai_install.documents.document import Document, Entries, Items, Text
from pai_install.documents.problem import YamlPath


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry of machine-list before its validation."""

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
