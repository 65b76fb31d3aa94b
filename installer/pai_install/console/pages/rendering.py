"""Templates of pages. Every value is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

FOLDER = Path(__file__).parent / "templates"
# a sign beside each state: no state is shown by its colour alone
SIGNS: Mapping[str, str] = {
    "WAITING": "○",
    "STARTING": "◔",
    "RUNNING": "▶",
    "STOPPING": "◼",
    "STOPPED": "◼",
    "SUCCEEDED": "✓",
    "FAILED": "✕",
}


def duration(start: str, end: str = "", now: datetime | None = None) -> str:
    """The time between two times of Kubernetes, or until now: `3:02`, `6 d`. "" for an unknown start."""
    try:
        until = datetime.fromisoformat(end) if end else now or datetime.now(UTC)
        found = until - datetime.fromisoformat(start)
    except (ValueError, TypeError):
        return ""
    if found < timedelta(0):
        return "0:00"
    if found.days:
        return f"{found.days} d"
    return f"{found.seconds // 3600}:{found.seconds // 60 % 60:02}"


_ENVIRONMENT = Environment(loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined)
_ENVIRONMENT.globals |= {"signs": SIGNS, "duration": duration}


def rendered(template: str, status: int = 200, **values: Any) -> Response:  # noqa: ANN401 - any value of a template
    """A page."""
    return HTMLResponse(_ENVIRONMENT.get_template(template).render(values), status)
