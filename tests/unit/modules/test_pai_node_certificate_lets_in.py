"""Who signs a login takes the machine off the list of those that were removed."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest


class Api:
    """kubectl with the list in memory."""

    def __init__(self, data: dict[str, str] | None) -> None:
        self.data = data
        self.patches: list[Any] = []

    def call(self, *words: str) -> Any:
        """Answers get with the value asked for, and keeps patches."""
        if words[0] == "patch":
            self.patches.append(json.loads(words[-1].removeprefix("--patch=")))
            return SimpleNamespace(ok=True, message="")
        path = words[-1].removeprefix("--output=jsonpath={.data.").removesuffix("}").replace("\\.", ".")
        return SimpleNamespace(ok=True, message=(self.data or {}).get(path, ""))


@pytest.mark.parametrize(
    ("data", "machine_id", "lets_in"),
    [
        ({"gpu-07": "id-7"}, "id-7", True),
        ({"gpu-07": "id-7"}, "", True),
        ({"gpu-07": "id-7"}, "id-of-another", False),
        ({"gpu-08": "id-8"}, "id-7", False),
        ({"gpu.07": "id-7"}, "id-7", False),
        (None, "id-7", False),
    ],
)
def test_only_the_machine_itself_comes_off_the_list(
    library: Callable[[str], Any], data: dict[str, str] | None, machine_id: str, lets_in: bool
) -> None:
    api = Api(data)
    library("pai_node_certificate").let_in(api, "gpu-07", machine_id)
    assert api.patches == ([{"data": {"gpu-07": None}}] if lets_in else [])


def test_dots_in_a_name_are_no_paths(library: Callable[[str], Any]) -> None:
    api = Api({"gpu.room-1": "id"})
    library("pai_node_certificate").let_in(api, "gpu.room-1", "id")
    assert api.patches == [{"data": {"gpu.room-1": None}}]
