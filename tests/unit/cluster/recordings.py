"""Answers of an API server as they were recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded"


def items(name: str) -> list[dict[str, Any]]:
    """The objects in recorded/NAME.json."""
    found: list[dict[str, Any]] = json.loads((RECORDED / f"{name}.json").read_text())["items"]
    return found
