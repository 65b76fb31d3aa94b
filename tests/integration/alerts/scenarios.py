"""A table of alerts -> unit tests of promtool: below the threshold, beyond it, and resolved."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pai_install.monitoring.rules import Alert

TABLE = Path(__file__).parent / "scenarios.yml"
_UNITS = {"s": 1 / 60, "m": 1, "h": 60, "d": 1440}
# minutes beyond what the rule needs
_MARGIN = 10
# a longer phase has a sample in five minutes
_LONG = 200


@dataclass(frozen=True)
class Scenario:
    """metrics: series -> values as promtool writes them. phase: minutes of each of the three phases."""

    alert: str
    metrics: dict[str, Any]
    phase: int
    below: tuple[str, ...]
    also: tuple[str, ...]

    @property
    def step(self) -> int:
        """Minutes between two samples."""
        return 5 if self.phase > _LONG else 1

    def test(self) -> dict[str, Any]:
        """One test of promtool: at the end of each phase exactly the expected alerts fire."""
        ends = [self.phase * number - self.step for number in (1, 2, 3)]
        wanted = (self.below, (self.alert, *self.also), self.below)
        return {
            "name": self.alert,
            "interval": f"{self.step}m",
            "input_series": [{"series": name, "values": self.values(value)} for name, value in self.metrics.items()],
            "promql_expr_test": [_firing(at, names) for at, names in zip(ends, wanted, strict=True)],
        }

    def values(self, value: Any) -> str:
        """The samples of all three phases."""
        pair = value if isinstance(value, list) else [value, value]
        if isinstance(value, dict):
            pair = [value, value]
        samples: list[float | None] = []
        for wanted in (pair[0], pair[1], pair[0]):
            samples += self._samples(wanted, samples)
        return " ".join("_" if sample is None else f"{sample:.10g}" for sample in samples)

    def _samples(self, value: Any, before: list[float | None]) -> list[float | None]:
        first = len(before) * self.step
        minutes = range(first, first + self.phase, self.step)
        if isinstance(value, str):
            offset = float(value.removeprefix("now") or 0)
            return [minute * 60 + offset for minute in minutes]
        if isinstance(value, list):
            return [value[minute % len(value)] for minute in minutes]
        if isinstance(value, dict):
            start = value.get("from", before[-1] if before and before[-1] is not None else 0)
            return [start + value["rate"] * (minute - first + self.step) for minute in minutes]
        return [value] * len(minutes)


def _firing(minute: int, names: tuple[str, ...]) -> dict[str, Any]:
    own = 'ALERTS{alertstate="firing", alertname!="Watchdog"}'
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(names)]
    return {"expr": f"group by (alertname) ({own})", "eval_time": f"{minute}m", "exp_samples": samples}


def scenarios(alerts: dict[str, Alert]) -> list[Scenario]:
    """The scenario of each alert in the table."""
    table = yaml.safe_load(TABLE.read_text())
    named = ((place.partition("/")[0], entry) for place, entry in table.items())
    return [_scenario(name, entry, alerts[name]) for name, entry in named]


def _scenario(name: str, entry: dict[str, Any], alert: Alert) -> Scenario:
    match = re.fullmatch(r"(\d+)([smhd])", alert.for_)
    assert match is not None
    held = int(match.group(1)) * _UNITS[match.group(2)]
    needed = int(entry.get("window", 0) + held) + _MARGIN
    phase = needed + -needed % 5
    return Scenario(name, entry["metrics"], phase, tuple(entry.get("below", ())), tuple(entry.get("also", ())))
