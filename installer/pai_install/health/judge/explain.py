"""Everything that is known of one check or one Xid, as text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping

from pai_install.checks.limits import Limits
from pai_install.errors import ExitCode, PaiError
from pai_install.health.judge.rules import TEXTS
from pai_install.health.judge.xid import XidMeaning
from pai_install.health.model import Action, CheckText

_XID = re.compile(r"(?:xid[ -]?)?(\d+)", re.IGNORECASE)
# Thresholds that a rule means without naming them in full.
_BESIDES = {
    "gpu-pcie-replays": r"pcie-replays-per-lane-gen\d",
    "gpu-xid": "xid-merge-seconds",
    "rdma-errors": "ib-.*-per-.*",
    "clock-offset": "clock-offset-warn-seconds",
    "pcie-aer": "aer-nonfatal",
}


def explain(name: str, limits: Limits, catalogue: Mapping[int, XidMeaning]) -> str:
    """What a check reads, its rule, its numbers on this site, whose they are, and what to do; or what an Xid means.

    Raises PaiError for what is neither.
    """
    if match := _XID.fullmatch(name.strip()):
        return _explain_xid(int(match.group(1)), catalogue)
    text = TEXTS.get(name)
    if text is None:
        near = difflib.get_close_matches(name, TEXTS, 3)
        raise PaiError(
            f"there is no check {name!r}",
            remedy=f"did you mean {', '.join(near)}?" if near else "`pai-install health explain` lists all checks",
            exit_code=ExitCode.USAGE,
        )
    lines = [
        f"{text.id}: {text.title}",
        f"reads:      {text.reads}",
        f"rule:       {text.threshold}",
        f"whose rule: {text.source}",
    ]
    lines += [f"number:     {line}" for name in _names(text, limits) for line in _numbers(name, limits)]
    if text.remedy:
        lines.append(f"what to do: {text.remedy}")
    if text.action is not Action.NONE:
        lines.append(f"action:     {text.action.value}")
    return "\n".join(lines) + "\n"


def _explain_xid(number: int, catalogue: Mapping[int, XidMeaning]) -> str:
    meaning = catalogue.get(number)
    if meaning is None:
        raise PaiError(
            f"Xid {number} is not in the catalogue of this program",
            remedy="look it up in NVIDIA's Xid catalogue; `health` WARNs of it",
            exit_code=ExitCode.USAGE,
        )
    lines = [f"Xid {number}: {meaning.name}", f"kind:       {meaning.kind}", f"verdict:    {meaning.verdict.value}"]
    if remedy := meaning.remedy or (TEXTS["gpu-xid"].remedy if meaning.action is not Action.NONE else ""):
        lines.append(f"what to do: {remedy}")
    if meaning.action is not Action.NONE:
        lines.append(f"action:     {meaning.action.value}")
    return "\n".join([*lines, "check:      gpu-xid (`pai-install health explain gpu-xid`)"]) + "\n"


def _names(text: CheckText, limits: Limits) -> Iterator[str]:
    """The thresholds that a check compares with."""
    besides = _BESIDES.get(text.id, "$")
    for name in dict.fromkeys([*limits.defaults, *(name for _, layer in limits.products for name in layer)]):
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text.threshold) or re.fullmatch(besides, name):
            yield name


def _numbers(name: str, limits: Limits) -> Iterator[str]:
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


def all_checks() -> str:
    """One line per check."""
    width = max(len(name) for name in TEXTS)
    return "".join(f"{name:<{width}}  {text.title}\n" for name, text in TEXTS.items())
