"""Everything that is known of one check, as text; and the table of all checks for the documentation."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from pai_install.errors import ExitCode, PaiError
from pai_install.health.limits import Limits
from pai_install.health.model import Action
from pai_install.health.rules import TEXTS
from pai_install.health.xid import XidMeaning


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


def checks_markdown() -> str:
    """The table of checks for docs/health.md."""
    rows = ["| Check | Says | Reads | Rule | Whose | What to do | Action |", "|---|---|---|---|---|---|---|"]
    for text in TEXTS.values():
        cells = (
            f"`{text.id}`",
            text.title,
            text.reads,
            text.threshold,
            text.source,
            text.remedy,
            text.action.value,
        )
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def limits_markdown(limits: Limits) -> str:
    """The table of thresholds for docs/health.md."""
    rows = ["| Threshold | Default | By product | Whose |", "|---|---|---|---|"]
    names = dict.fromkeys([*limits.defaults, *(name for _, layer in limits.products for name in layer)])
    for name in names:
        default = limits.defaults.get(name)
        special = [
            f"{pattern.pattern}: {layer[name].value:g}".replace("|", "\\|")
            for pattern, layer in limits.products
            if name in layer
        ]
        source = (
            default.source if default else next(layer[name].source for _, layer in limits.products if name in layer)
        )
        rows.append(f"| `{name}` | {f'{default.value:g}' if default else ''} | {'; '.join(special)} | {source} |")
    return "\n".join(rows) + "\n"


def xids_markdown(catalogue: dict[int, XidMeaning]) -> str:
    """The table of Xids for docs/health.md."""
    rows = ["| Xid | Meaning | Verdict | Action | What to do |", "|---|---|---|---|---|"]
    merged: dict[tuple[str, ...], list[int]] = {}
    for number, meaning in sorted(catalogue.items()):
        key = (meaning.name, meaning.verdict.value, meaning.action.value, meaning.remedy)
        merged.setdefault(key, []).append(number)
    for (name, verdict, action, remedy), numbers in merged.items():
        rows.append(f"| {', '.join(map(str, numbers))} | {name} | {verdict} | {action} | {remedy} |")
    return "\n".join(rows) + "\n"
