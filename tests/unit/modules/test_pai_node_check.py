"""Whether containers run is told by how one ends, not by what it prints."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

Library = Callable[[str], Any]


def checks(library: Library, ends: int, said: str, refusal: str = "") -> Any:
    """Checks on a machine where every program ends so; an image can be pulled, but for the refusal."""
    module = library("pai_node_check")
    calls: list[list[str]] = []

    def run_command(argv: list[str]) -> tuple[int, str, str]:
        calls.append(argv)
        return ends, "", said

    def repull(_image: str) -> None:
        if refusal:
            raise module.ImagesError(refusal)

    module.repull = repull
    parameters = {"image": "registry/busybox:1", "docker_image": "registry/busybox:1"}
    made = module.Checks(SimpleNamespace(params=parameters, run_command=run_command))
    made.calls, made.library = calls, module
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


def test_image_that_cannot_be_pulled_is_named(library: Library) -> None:
    found = checks(library, 42, "", "ctr: not found").containerd("runc")
    assert (found["verdict"], found["value"]) == ("FAIL", "ctr: not found")
    assert found["message"] == "cannot pull registry/busybox:1"


@pytest.mark.parametrize(
    ("seen", "verdict", "words"),
    [
        ((5, []), "PASS", "5 containers of the system run from the planned images"),
        ((5, ["etcd (r/etcd:3)"]), "WARN", "containers run from another image than the planned one: etcd (r/etcd:3)"),
        (None, "UNKNOWN", "the containers' images cannot be seen"),
    ],
)
def test_images_of_running_containers(
    library: Library, seen: tuple[int, list[str]] | None, verdict: str, words: str
) -> None:
    made = checks(library, 42, "")

    def running_others() -> tuple[int, list[str]]:
        if seen is None:
            raise made.library.ImagesError("containerd does not answer")
        return seen

    made.library.running_others = running_others
    found = made.images()
    assert (found["id"], found["verdict"], found["message"]) == ("system-images", verdict, words)
