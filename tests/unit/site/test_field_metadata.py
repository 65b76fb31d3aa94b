"""What fields declare beside their types."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import Field

from pai_install.site.field_metadata import (
    Change,
    NotYet,
    WithoutEffect,
    changes,
    fixed,
    live,
    new_machines,
    not_yet,
    restarts,
    without_effect,
)
from pai_install.site.fields import FrozenModel

_SHARED = NotYet("the door is not built", when=lambda house: house.door)


class House(FrozenModel):
    """A model with one field of each kind."""

    colour: Annotated[str, live()] = "white"
    roof: Annotated[str | None, fixed("build another house")] = None
    door: Annotated[bool, _SHARED] = False
    handle: Annotated[str, _SHARED] = "brass"
    cellar: Annotated[str | None, NotYet("no cellar yet")] = None
    moat: Annotated[bool, WithoutEffect("there are no dragons")] = Field(default=False, alias="the-moat")


def test_every_key_has_a_class() -> None:
    words = {key: str(change) for key, change in changes(House).items()}
    assert words == {
        "colour": "applies live",
        "roof": "cannot change on a running cluster: build another house",
        "door": "changes nothing",
        "handle": "changes nothing",
        "cellar": "changes nothing",
        "the-moat": "changes nothing",
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (restarts("docker.service", "containerd.service"), "restarts docker, containerd"),
        (restarts("a.service", note="once"), "restarts a: once"),
        (new_machines(), "new machines only"),
        (live("at once"), "applies live: at once"),
    ],
)
def test_a_class_in_words(change: Change, words: str) -> None:
    assert str(change) == words


def test_keys_without_effect_are_named_as_in_the_file() -> None:
    assert without_effect(House) == {"the-moat": "there are no dragons"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, []),
        ({"handle": "steel"}, []),
        ({"door": True, "handle": "steel"}, ["the door is not built"]),
        ({"cellar": "wine"}, ["no cellar yet"]),
        ({"cellar": None}, []),
    ],
)
def test_what_is_not_built_is_said_once_where_it_is_asked_for(values: dict[str, object], said: list[str]) -> None:
    assert list(not_yet(House.model_validate(values))) == said
