"""Everything that is known of one check, as text: the same for every room."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pai_install.checks.check import Check
from pai_install.checks.limits import Limits
from pai_install.checks.verdict import Action
from pai_install.errors import ExitCode, PaiError

NO_LIMITS = Limits({})


def explain(check: Check[Any], limits: Limits = NO_LIMITS) -> str:
    """What a check reads, its rule, its limits on this site, whose they are, and what to do."""
    lines = [("reads", check.reads), ("rule", check.rule), ("whose rule", check.source)]
    lines += [("number", line) for name in check.limits for line in numbers(name, limits)]
    lines.append(("what to do", check.remedy))
    lines.append(("action", "" if check.action is Action.NONE else check.action.value))
    told = [f"{f'{label}:':<11} {text}" for label, text in lines if text]
    return "\n".join([f"{check.id}: {check.title}", *told]) + "\n"


def numbers(name: str, limits: Limits) -> Iterator[str]:
    """Every number of a threshold: default, per product, and the site's own."""
    if (default := limits.defaults.get(name)) is not None:
        yield f"{name} = {default.value:g} ({default.source})"
    for pattern, layer in limits.products:
        if name in layer:
            yield f"{name} = {layer[name].value:g} for {pattern.pattern} ({layer[name].source})"
    if name in limits.site:
        yield f"{name} = {limits.site[name].value:g} on this site ({limits.site[name].source})"
    for sku, layer in limits.skus.items():
        if name in layer:
            yield f"{name} = {layer[name].value:g} for SKU {sku} ({layer[name].source})"


def list_checks(checks: Iterable[Check[Any]]) -> str:
    """One line per check."""
    titles = {check.id: check.title for check in checks}
    width = max(map(len, titles), default=0)
    return "".join(f"{name:<{width}}  {title}\n" for name, title in titles.items())


def find_check(name: str, checks: Mapping[str, Check[Any]], *, listing: str = "pai-install explain") -> Check[Any]:
    """The check of that name. Raises PaiError, naming those that are spelled nearly so.

    listing: the command that lists all checks.
    """
    if name in checks:
        return checks[name]
    near = difflib.get_close_matches(name, checks, 3)
    raise PaiError(
        f"there is no check {name!r}",
        remedy=f"did you mean {', '.join(near)}?" if near else f"`{listing}` lists all checks",
        exit_code=ExitCode.USAGE,
    )
