"""JSON of others than root of this machine: members of groups, kubelets, registries, and etcd of other machines."""

from __future__ import annotations

import json
from typing import Any


def parse(content: str | bytes) -> Any:
    """Returns the value of a JSON text. Raises ValueError, also for a text that is too deep for the stack."""
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
