"""YAML 1.1 as plain data: in C where libyaml is there, which is fifteen times as fast."""

from __future__ import annotations

from typing import Any

import yaml

FAST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_DEPTH = 60


def load_yaml(text: str) -> Any:  # noqa: ANN401 - any content
    """The data of a file of our own. Raises yaml.YAMLError."""
    return yaml.load(text, Loader=FAST)  # noqa: S506 - both loaders are safe ones


def load_untrusted_yaml(text: str) -> Any:  # noqa: ANN401 - any content
    """The data of a text that others wrote. Raises yaml.YAMLError and ValueError, also for aliases.

    Nested too deeply it would end the process. Aliases of merged mappings (<<) multiply beyond any memory.
    """
    depth = 0
    for event in yaml.parse(text, Loader=FAST):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed")
        if depth > MAX_DEPTH:
            raise yaml.YAMLError("nested too deeply")
    return load_yaml(text)
