"""One file of a machine's file system."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a machine: content and mode, or, where `link` is set, a symbolic link to it."""

    content: str = ""
    mode: int = 0o644
    link: str = ""
