"""Members of etcd leave one after the other, and each time the others are looked at anew."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.unit.modules.conftest import ModuleFailedError, Run


@pytest.fixture
def library(library: Callable[[str], Any]) -> Callable[[str], Any]:
    """Each module loaded once, so that what a test replaces in it stays replaced."""
    return cache(library)


@pytest.fixture
def peers(library: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Members m1, m2, ... at 10.0.0.1 and on. sick: names; asked: what was done, in order."""
    module = library("pai_etcd")
    state: dict[str, Any] = {"members": [1, 2, 3], "sick": set(), "asked": []}

    def members() -> list[dict[str, Any]]:
        state["asked"].append("looked")
        return [
            {
                "id": str(one),
                "name": f"m{one}",
                "peers": [f"https://10.0.0.{one}:2380"],
                "clients": [],
                "learner": False,
            }
            for one in state["members"]
        ]

    def remove(member: dict[str, Any]) -> None:
        state["asked"].append(member["name"])
        state["members"].remove(int(member["id"]))

    monkeypatch.setattr(module, "members", members)
    monkeypatch.setattr(module, "remove", remove)
    monkeypatch.setattr(module, "sickness", lambda one: "timed out" if one["name"] in state["sick"] else "")
    return state


def leave(run_module: Run, *numbers: int, **words: Any) -> dict[str, Any]:
    places = [f"10.0.0.{number}" for number in numbers]
    return run_module("pai_etcd", leaving=places, address="10.0.0.1", timeout=0, **words)


def test_one_after_the_other_the_sick_one_first(peers: dict[str, Any], run_module: Run) -> None:
    peers["sick"] = {"m3"}
    assert leave(run_module, 2, 3)["removed"] == ["m3", "m2"]
    assert peers["asked"] == ["looked", "m3", "looked", "m2", "looked"]
    assert peers["members"] == [1]


def test_again_there_is_nothing_to_do(peers: dict[str, Any], run_module: Run) -> None:
    peers["members"] = [1]
    assert not leave(run_module, 2, 3)["changed"]


def test_looking_takes_nobody_out(peers: dict[str, Any], run_module: Run) -> None:
    result = leave(run_module, 3, only_check=True)
    assert (result["removed"], result["changed"]) == (["m3"], False)
    assert peers["members"] == [1, 2, 3]


def test_without_a_quorum_nobody_leaves_and_that_is_explained(
    peers: dict[str, Any], run_module: Run, snapshot: SnapshotAssertion
) -> None:
    peers["sick"] = {"m2", "m3"}
    with pytest.raises(ModuleFailedError) as caught:
        leave(run_module, 3)
    assert caught.value.result["msg"] == snapshot
    assert "m2: timed out" in caught.value.result["msg"]
    assert peers["members"] == [1, 2, 3]
