"""A migration as a result and as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import Field

from pai_install.documents.problem import Problem, printable, text_lines
from pai_install.json_schema import Count, Report, ReportObject
from pai_install.migrate.account import Fate
from pai_install.migrate.run import Migration
from pai_install.system.words import plural


class AccountEntry(ReportObject):
    """The outcome of a key, an entry, or a file of the old site."""

    file: str
    line: int
    path: str
    outcome: Fate
    text: str


class NoteEntry(ReportObject):
    """Dropped and changed entries of a kind."""

    what: str
    why: str


class MigrationReport(Report, title="pai-install migrate"):
    """A migration of an old site."""

    ok: bool = Field(description="Whether the new site is valid.")
    origin: str
    files: tuple[str, ...]
    counts: Mapping[str, Count]
    account: tuple[AccountEntry, ...]
    notes: tuple[NoteEntry, ...]
    problems: tuple[Problem, ...]


def migration_report(done: Migration) -> MigrationReport:
    """Returns a migration as a result."""
    return MigrationReport(
        ok=done.reading.site is not None,
        origin=done.origin,
        files=tuple(map(str, done.files)),
        counts={outcome.value: count for outcome, count in done.counts.items()},
        account=tuple(map(AccountEntry.model_validate, done.account)),
        notes=tuple(map(NoteEntry.model_validate, done.notes)),
        problems=tuple(done.reading.problems),
    )


def migration_text(done: Migration, *, whole: bool) -> str:
    """Returns the outcome of the migration. whole: of every key, entry, and file."""
    return "".join(f"{line}\n" for line in _lines(done, whole=whole))


def _lines(done: Migration, *, whole: bool) -> Iterator[str]:
    yield f"migrated from {done.origin}: {', '.join(str(path) for path in done.files)}"
    counts = ", ".join(f"{count} {outcome.value}" for outcome, count in done.counts.items())
    yield f"{plural(sum(done.counts.values()), 'value')} of the old site: {counts}"
    lines = [str(entry) for entry in done.account] if whole else [f"{note.what}: {note.why}" for note in done.notes]
    if lines and not whole:
        yield "dropped or changed:"
    yield from (printable(f"  {line}") for line in lines)
    yield from text_lines(done.reading.problems)
    state = "valid" if done.reading.site is not None else "not valid yet: correct the lines above"
    yield f"the new site is {state}"
