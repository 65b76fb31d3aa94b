"""Everything that is known of one check, the same for every room."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pai_install.checks.check import Check
from pai_install.checks.limits import Limits
from pai_install.checks.verdict import Action
from pai_install.errors import ExitCode, PaiError
from pai_install.json_schema import Real

NO_LIMITS = Limits({})


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a threshold. applies_to: empty, or "for PRODUCT", "on this site", "for SKU NAME"."""

    name: str
    value: Real
    applies_to: str
    source: str

    def __str__(self) -> str:
        where = f" {self.applies_to}" if self.applies_to else ""
        return f"{self.name} = {self.value:g}{where} ({self.source})"


@dataclass(frozen=True, slots=True)
class CheckExplanation:
    """A check of a verb: evidence, rule, limits on this site and their origins, remedy. Texts may be empty."""

    verb: str
    id: str
    title: str
    reads: str
    rule: str
    source: str
    remedy: str
    numbers: tuple[Number, ...]
    action: str

    def __str__(self) -> str:
        lines = [("reads", self.reads), ("rule", self.rule), ("whose rule", self.source)]
        lines += [("number", str(number)) for number in self.numbers]
        lines += [("what to do", self.remedy), ("action", self.action)]
        details = [f"{f'{label}:':<11} {text}" for label, text in lines if text]
        return "\n".join([f"{self.id}: {self.title}", *details]) + "\n"


def explain(check: Check[Any], verb: str, limits: Limits = NO_LIMITS) -> CheckExplanation:
    """Describes a check of a verb."""
    texts = {name: getattr(check, name) for name in ("id", "title", "reads", "rule", "source", "remedy")}
    action = "" if check.action is Action.NONE else check.action.value
    return CheckExplanation(verb, **texts, numbers=tuple(numbers(check, limits)), action=action)


def numbers(check: Check[Any], limits: Limits) -> Iterator[Number]:
    """Every number that a check compares with: defaults, per product, and the site's own."""
    for name in check.limits:
        if (default := limits.defaults.get(name)) is not None:
            yield Number(name, default.value, "", default.source)
        layers = [
            *((f"for {pattern.pattern}", layer) for pattern, layer in limits.products),
            ("on this site", limits.site),
            *((f"for SKU {sku}", layer) for sku, layer in limits.skus.items()),
        ]
        yield from (
            Number(name, layer[name].value, applies_to, layer[name].source)
            for applies_to, layer in layers
            if name in layer
        )


def list_checks(checks: Iterable[Check[Any]]) -> str:
    """One line per check."""
    titles = {check.id: check.title for check in checks}
    width = max(map(len, titles), default=0)
    return "".join(f"{name:<{width}}  {title}\n" for name, title in titles.items())


def find_check(name: str, checks: Mapping[str, Check[Any]], *, listing: str = "pai-install explain") -> Check[Any]:
    """Returns the check of that name. Raises PaiError with similar names.

    listing: the command that lists all checks.
    """
    if name in checks:
        return checks[name]
    near = difflib.get_close_matches(name, checks, 3)
    raise PaiError(
        f"cannot find check {name!r}",
        code="unknown-check",
        remedy=f"did you mean {', '.join(near)}?" if near else f"list all checks with `{listing}`",
        exit_code=ExitCode.USAGE,
    )
