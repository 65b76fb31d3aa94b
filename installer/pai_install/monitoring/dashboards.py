"""Dashboards for Grafana: data of dashboards.yml, and their JSON. Pure but for reading the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from pai_install.system.yaml import load_yaml

DASHBOARDS = Path(__file__).parent / "dashboards.yml"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_SCHEMA = 39
_COLUMNS = 24
# columns and rows of a panel
_SIZES = {"stat": (6, 4), "graph": (12, 8)}
_TYPES = {"stat": "stat", "graph": "timeseries"}
NODE = "$node"


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Panel(_Data):
    """queries: legend -> expression. optional: clusters without the feature have no series."""

    title: str
    kind: Literal["stat", "graph"] = "graph"
    unit: str = "short"
    queries: Mapping[str, str]
    optional: bool = False


class Dashboard(_Data):
    """Panels in their order."""

    title: str
    panels: Sequence[Panel]

    @property
    def of_node(self) -> bool:
        """Whether it shows one node, which the reader chooses."""
        return any(NODE in query for panel in self.panels for query in panel.queries.values())


class _File(BaseModel):
    dashboards: Mapping[str, Dashboard]


@cache
def dashboards() -> Mapping[str, Dashboard]:
    """Returns name -> dashboard. Raises pydantic's ValidationError for an invalid file, a bug in pai-install."""
    return _File.model_validate({"dashboards": load_yaml(DASHBOARDS.read_text(encoding="utf-8"))}).dashboards


def grafana(name: str, dashboard: Dashboard) -> dict[str, Any]:
    """Returns the dashboard as Grafana imports it."""
    return {
        "uid": f"pai-install-{name}",
        "title": f"{dashboard.title} (pai-install)",
        "tags": ["pai-install"],
        "schemaVersion": _SCHEMA,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": list(_variables(dashboard))},
        "panels": list(_panels(dashboard.panels)),
    }


def _variables(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    if dashboard.of_node:
        query = 'label_values(up{job="node"}, node)'
        found = {"query": query, "refId": "node"}
        yield {"name": "node", "label": "Node", "type": "query", "datasource": _SOURCE, "query": found, "refresh": 2}


def _panels(panels: Sequence[Panel]) -> Iterator[dict[str, Any]]:
    """Yields the panels from left to right, and then from top to bottom."""
    column = row = height = 0
    for number, panel in enumerate(panels, 1):
        wide, high = _SIZES[panel.kind]
        if column + wide > _COLUMNS or (column and high != height):
            column, row = 0, row + height
        height = high
        place = {"x": column, "y": row, "w": wide, "h": high}
        column += wide
        yield {
            "id": number,
            "title": panel.title,
            "type": _TYPES[panel.kind],
            "datasource": _SOURCE,
            "gridPos": place,
            "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
            "targets": list(_targets(panel)),
        }


def _targets(panel: Panel) -> Iterator[dict[str, Any]]:
    for number, (legend, query) in enumerate(panel.queries.items()):
        yield {"refId": chr(ord("A") + number), "datasource": _SOURCE, "expr": query, "legendFormat": legend}
