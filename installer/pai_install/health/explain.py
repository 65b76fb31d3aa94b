"""Everything that is known of one check, as text."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from pai_install.errors import ExitCode, PaiError
from pai_install.health.limits import Limits
from pai_install.health.model import Action
from pai_install.health.rules import TEXTS


def explain(check: str, limits: Limits) -> str:
    """What the check reads, its rule, whose rule it is, and what to do. Raises PaiError for an unknown id."""
    text = TEXTS.get(check)
    if text is None:
        near = difflib.get_close_matches(check, TEXTS, 3)
        raise PaiError(
            f"there is no check {check!r}",
            remedy=f"did you mean {', '.join(near)}?" if near else "`pai-install health explain` lists all checks",
            exit_code=ExitCode.USAGE,
        )
    lines = [
        f"{text.id}: {text.title}",
        f"reads:      {text.reads}",
        f"rule:       {text.threshold}",
        f"whose rule: {text.source}",
    ]
    lines += [f"number:     {line}" for line in _numbers(text.threshold, limits)]
    if text.remedy:
        lines.append(f"what to do: {text.remedy}")
    if text.action is not Action.NONE:
        lines.append(f"action:     {text.action.value}")
    return "\n".join(lines) + "\n"


def _numbers(rule: str, limits: Limits) -> Iterator[str]:
    for name, limit in limits.defaults.items():
        if name in rule:
            yield f"{name} = {limit.value:g} ({limit.source})"


def all_checks() -> str:
    """One line per check."""
    width = max(len(name) for name in TEXTS)
    return "".join(f"{name:<{width}}  {text.title}\n" for name, text in TEXTS.items())
