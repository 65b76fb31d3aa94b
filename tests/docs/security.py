"""The tables of attacks and of controls in docs/security.md."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.scheduling.model import BACKENDS
from tests.docs.markdown import table, with_generated
from tests.hardening.controls import STATES, Control, controls, section_of, sections
from tests.hardening.judge import words
from tests.integration.users.attacks import GROUPS


def with_controls(text: str) -> str:
    """The page with its tables made anew. Raises ValueError where it has no marks."""
    return with_generated(text, _attacks(), _lines())


def _attacks() -> Iterator[str]:
    names = {name for group in GROUPS for name in group.names}
    yield f"{len(names)} attacks."
    yield ""
    rows = (
        (
            group.operation,
            ", ".join(group.only or BACKENDS),
            f"`{group.test}`",
            ", ".join(f"`{it}`" for it in group.names),
        )
        for group in GROUPS
    )
    yield from table(("Operation", "Schedulers", "Test", "Attacks"), rows)


def _lines() -> Iterator[str]:
    found = controls()
    yield "; ".join(f"{sum(entry.state == state for entry in found)} {state}" for state in STATES) + "."
    for name, title in sections().items():
        rows = [_row(entry) for entry in found if section_of(entry) == name]
        yield ""
        yield f"### {name} {title}"
        yield ""
        yield from table(("Control", "About", "State", "Seen by", "Note"), rows)


def _row(entry: Control) -> tuple[str, str, str, str, str]:
    seen = "; ".join(words(check) for check in entry.checks)
    return entry.id, entry.about, f"**{entry.state}**" if entry.state == "not met" else entry.state, seen, entry.why
