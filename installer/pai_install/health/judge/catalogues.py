"""Reads the tables that come with the program: thresholds and Xids."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from ruamel.yaml import YAML

from pai_install.checks.limits import Limit, Limits
from pai_install.checks.verdict import Action, Verdict
from pai_install.health.judge.xid import XidMeaning


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
    rows = _load("xid.yml")["xids"]
    found = {}
    for numbers, name, verdict, action, kind, *rest in rows:
        for number in numbers if isinstance(numbers, list) else [numbers]:
            found[number] = XidMeaning(number, name, Verdict(verdict), Action(action), kind, rest[0] if rest else "")
    return found


def _load(name: str) -> dict[str, Any]:
    text = resources.files("pai_install.health.judge").joinpath(name).read_text()
    loaded: dict[str, Any] = YAML(typ="safe", pure=True).load(text)
    return loaded
