"""Pairs of an add-on's input and the objects that come of it: read, rendered, and written anew.

`python -m tests.addons` writes the expected objects of every pair; look at the difference before you keep it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import cache
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import yaml
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]


@cache
def addon_action() -> ModuleType:
    """playbooks/action_plugins/pai_addons.py."""
    path = ROOT / "playbooks" / "action_plugins" / "pai_addons.py"
    spec = importlib.util.spec_from_file_location("pai_addons_action", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pairs() -> Iterator[tuple[Path, Path]]:
    """Input and expected objects: addons/NAME/tests/CASE.input.yml and CASE.expected.yml."""
    for given in sorted(ROOT.glob("addons/*/tests/*.input.yml")):
        yield given, given.with_name(given.name.replace(".input.", ".expected."))


def rendered(given: Path) -> list[dict[str, Any]]:
    """The objects of an input: `values`, and `manifests` (YAML texts that stand for the upstream ones)."""
    words, action = yaml.safe_load(given.read_text()), addon_action()
    # the code of agents has tests of its own
    agent_files = action.FILTERS["agent_files"]
    names = {"agent_files": lambda agent: dict.fromkeys(agent_files(agent), "code")}
    with patch.dict(action.FILTERS, names):
        found: list[dict[str, Any]] = action.objects_of(
            given.parents[1], words.get("values") or {}, words.get("manifests", ())
        )
    return found


def as_yaml(objects: list[dict[str, Any]]) -> str:
    """The objects as they are kept."""
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style, writer.explicit_start, writer.width = False, True, 4096
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.indent(mapping=2, sequence=4, offset=2)
    text = StringIO()
    writer.dump_all(objects, text)
    return text.getvalue()


if __name__ == "__main__":
    for given, expected in pairs():
        expected.write_text(as_yaml(rendered(given)))
