"""How many real failures restart a job, if the job recorder counts them. Pure."""

from __future__ import annotations

from pai_install.agents.common.values import Json, child, text

# annotation of a job
RETRIES = "pai-install/retries"
_MOST_DIGITS = 9


def retries_of(job: Json) -> int | None:
    """How many real failures restart a job, None if its scheduler counts them."""
    note = text(child(job, "metadata", "annotations").get(RETRIES))
    # str.isdigit is true for digits such as a superscript two, which int() rejects.
    return int(note) if note.isascii() and note.isdigit() and len(note) <= _MOST_DIGITS else None
