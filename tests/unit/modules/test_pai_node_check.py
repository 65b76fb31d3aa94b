"""Whether containers run is told by how one ends, not by what it prints."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

Library = Callable[[str], Any]


def checks(library: Library, ends: int, said: str) -> Any:
    """Checks on a machine where every program ends so; pulling an image works."""
    module = library("pai_node_check")
    calls: list[list[str]] = []

    def run_command(argv: list[str]) -> tuple[int, str, str]:
        calls.append(argv)
        return (0, "", "") if "pull" in argv else (ends, "", said)

    parameters = {"image": "registry/busybox:1", "docker_image": "registry/busybox:1"}
    made = module.Checks(SimpleNamespace(params=parameters, run_command=run_command))
    made.calls = calls
    return made


@pytest.mark.parametrize("kind", ["containerd", "docker"])
def test_container_that_ended_as_asked_ran_whatever_became_of_its_output(library: Library, kind: str) -> None:
    made = checks(library, 42, "level=warning msg=DEPRECATION")
    found = getattr(made, kind)("runc")
    assert (found["id"], found["verdict"]) == (f"{kind}-runc", "PASS")
    assert made.calls[-1][-4:] == ["/bin/busybox", "sh", "-c", "exit 42"]


@pytest.mark.parametrize("ends", [0, 1, 125])
def test_any_other_end_is_a_failure_with_its_words(library: Library, ends: int) -> None:
    """Also 0: something answered, but not the container."""
    found = checks(library, ends, "no such runtime").docker("nvidia")
    assert (found["verdict"], found["value"]) == ("FAIL", f"exit status {ends}: no such runtime")
    assert found["expected"] == "exit status 42"
