"""Reads the tables that come with the program: thresholds and Xids."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from pai_install.checks.limits import Limit, Limits
from pai_install.checks.verdict import Action, Verdict
from pai_install.health.judge.meaning import Decode, Phrase, XidMeaning
from pai_install.system.yaml import load_yaml


@dataclass(frozen=True, slots=True)
class SxidMeaning:
    """One row of sxid.yml: an error of an NVSwitch."""

    number: int
    name: str
    verdict: Verdict


def load_limits() -> Limits:
    """The thresholds that come with the program (thresholds.yml beside this file)."""
    raw = _load("thresholds.yml")
    return Limits(
        {name: _limit(entry) for name, entry in raw["defaults"].items()},
        tuple(
            (re.compile(product["match"]), {name: _limit(entry) for name, entry in product["limits"].items()})
            for product in raw["products"]
        ),
    )


def _limit(entry: Mapping[str, Any]) -> Limit:
    return Limit(float(entry["value"]), str(entry["source"]))


def load_catalogue() -> dict[int, XidMeaning]:
    """Number -> meaning, from xid.yml beside this file."""
    raw = _load("xid.yml")
    decodes: dict[int, list[Decode]] = {}
    for number, unit, status, sub_code, verdict, *rest in raw["nvlink5"]:
        for one in status if isinstance(status, list) else [status]:
            row = Decode(unit, one, sub_code, Verdict(verdict), rest[0] if rest else "")
            decodes.setdefault(number, []).append(row)
    phrases: dict[int, list[Phrase]] = {}
    for number, words, name, verdict, action, remedy in raw["phrases"]:
        phrases.setdefault(number, []).append(Phrase(words, name, Verdict(verdict), Action(action), remedy))
    found = {}
    for numbers, name, verdict, action, kind, *rest in raw["xids"]:
        for number in numbers if isinstance(numbers, list) else [numbers]:
            remedy, rows = rest[0] if rest else "", tuple(decodes.get(number, ()))
            notes = tuple(phrases.get(number, ()))
            found[number] = XidMeaning(number, name, Verdict(verdict), Action(action), kind, remedy, rows, notes)
    return found


@cache
def load_sxids() -> dict[int, SxidMeaning]:
    """Number -> meaning, from sxid.yml beside this file."""
    return {number: SxidMeaning(number, name, Verdict(verdict)) for number, name, verdict in _load("sxid.yml")["sxids"]}


def _load(name: str) -> dict[str, Any]:
    text = resources.files("pai_install.health.judge").joinpath(name).read_text()
    loaded: dict[str, Any] = load_yaml(text)
    return loaded
