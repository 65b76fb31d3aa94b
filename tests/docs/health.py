"""The tables of checks, numbers and Xids in docs/health.md."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.checks.limits import Limits
from pai_install.health.judge.catalogues import SxidMeaning, load_catalogue, load_limits, load_sxids
from pai_install.health.judge.meaning import XidMeaning
from pai_install.health.judge.rules import CHECKS
from tests.docs.markdown import table, with_generated


def with_checks(text: str) -> str:
    """The page with its tables made anew. Raises ValueError where it has no marks."""
    return with_generated(text, checks(), numbers(load_limits()), xids(load_catalogue()), sxids(load_sxids()))


def checks() -> Iterator[str]:
    """Every check."""
    yield f"{len(CHECKS)} checks. A finding's own text says more where it matters."
    yield ""
    rows = [
        (f"`{check.id}`", check.title, check.reads, check.rule, check.source, check.remedy, check.action.value)
        for check in CHECKS.values()
    ]
    yield from table(("Check", "Says", "Reads", "Rule", "Whose", "What to do", "Action"), rows)


def numbers(limits: Limits) -> Iterator[str]:
    """Every threshold."""
    names = dict.fromkeys([*limits.defaults, *(name for _, layer in limits.products for name in layer)])
    yield from table(("Threshold", "Default", "By product", "Whose"), (_number(name, limits) for name in names))


def _number(name: str, limits: Limits) -> tuple[str, str, str, str]:
    layers = [(pattern.pattern, layer[name]) for pattern, layer in limits.products if name in layer]
    special = "; ".join(f"{pattern}: {limit.value:g}" for pattern, limit in layers)
    default = limits.defaults.get(name)
    if default is None:
        return f"`{name}`", "", special, layers[0][1].source
    return f"`{name}`", f"{default.value:g}", special, default.source


def xids(catalogue: dict[int, XidMeaning]) -> Iterator[str]:
    """Every Xid; those of one meaning share a row."""
    merged: dict[tuple[str, ...], list[int]] = {}
    for number, meaning in sorted(catalogue.items()):
        key = (meaning.name, meaning.verdict.value, meaning.action.value, meaning.remedy)
        merged.setdefault(key, []).append(number)
    rows = [(", ".join(map(str, same)), *key) for key, same in merged.items()]
    yield from table(("Xid", "Meaning", "Verdict", "Action", "What to do"), rows)


def sxids(catalogue: dict[int, SxidMeaning]) -> Iterator[str]:
    """Every SXid; those of one meaning share a row."""
    merged: dict[tuple[str, str], list[int]] = {}
    for number, meaning in sorted(catalogue.items()):
        merged.setdefault((meaning.name, meaning.verdict.value), []).append(number)
    rows = [(", ".join(map(str, same)), *key) for key, same in merged.items()]
    yield from table(("SXid", "Meaning", "Verdict"), rows)
