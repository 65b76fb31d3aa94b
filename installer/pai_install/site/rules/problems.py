"""A problem that a rule found, before its line in the file is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pai_install.documents.document import Document
from pai_install.documents.problem import Severity, YamlPath


@dataclass(frozen=True, slots=True)
class Wrong:
    """A problem at a path of the file, or of a part of it. code: without its "site." prefix."""

    path: YamlPath
    code: str
    message: str
    remedy: str = ""
    severity: Severity = "error"


def add_problems(source: Document, problems: Iterable[Wrong], below: YamlPath = ()) -> None:
    """Adds problems to the document. below: the part of the file that contains their paths."""
    for found in problems:
        path = (*below, *found.path)
        source.add(path, f"site.{found.code}", found.message, found.remedy, severity=found.severity)
