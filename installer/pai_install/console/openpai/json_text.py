"""JSON as the API writes it. Pure."""

from __future__ import annotations

import json
from typing import Any


def json_text(value: Any) -> str:  # noqa: ANN401 - anything that JSON can hold
    """Compact JSON of ASCII characters."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
