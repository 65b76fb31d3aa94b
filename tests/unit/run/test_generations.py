"""How far rotations have come."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pai_install.errors import ExitCode, PaiError
from pai_install.run.generations import Generations, Rotation, read_generations, write_generations
from pai_install.run.state import open_state

MACHINES = ("one", "two")


def test_rotation_counts_up_machine_by_machine() -> None:
    rotation = Rotation().begun()
    assert (rotation.wanted, rotation.behind(MACHINES), rotation.oldest(MACHINES)) == (1, MACHINES, 0)
    rotation = rotation.at("one", 1)
    assert (rotation.behind(MACHINES), rotation.oldest(MACHINES)) == (("two",), 0)
    rotation = rotation.at("two", 1)
    assert (rotation.behind(MACHINES), rotation.oldest(MACHINES)) == ((), 1)
    rotation = rotation.begun().at("two", 2)
    assert (rotation.behind(MACHINES), rotation.oldest(MACHINES)) == (("one",), 1)
    assert rotation.behind(("three",)) == ("three",), "a machine that is not known has none"
    assert rotation.oldest(()) == 2


@pytest.mark.parametrize("generation", [0, -1, 3])
def test_generation_that_was_never_begun_is_a_bug(generation: int) -> None:
    with pytest.raises(ValueError, match="of 2"):
        Rotation(wanted=2).at("one", generation)


def test_file_is_the_owners_and_holds_every_rotation(tmp_path: Path) -> None:
    path = open_state(tmp_path).generations
    assert read_generations(path) == Generations()
    kept = Generations().having("registry-password", Rotation().begun().at("one", 1)).having("key", Rotation())
    write_generations(path, kept)
    assert read_generations(path) == kept
    assert read_generations(path).of("registry-password").reached == {"one": 1}
    assert read_generations(path).of("unknown") == Rotation()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "[]", '{"rotations": {"a": {"wanted": -1}}}', '{"other": 1}'])
def test_broken_file_is_told_and_never_taken_for_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "generations.json"
    path.write_text(text)
    with pytest.raises(PaiError, match=r"generations\.json is broken") as caught:
        read_generations(path)
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED
