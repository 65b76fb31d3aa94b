"""Labels and taints: ours are set and taken off, those of others stay."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

Library = Callable[[str], Any]

WORDS = st.sampled_from(["a", "b", "example.com/rack", "x.io/pool"])
LABELS = st.dictionaries(WORDS, st.sampled_from(["1", "2", ""]), max_size=3)
TAINTS = st.lists(st.sampled_from(["a:NoSchedule", "a=1:NoSchedule", "b=2:NoExecute"]), max_size=2).map(
    lambda words: [word for word in words if word != "a:NoSchedule" or "a=1:NoSchedule" not in words]
)


@pytest.fixture(scope="session")
def labels(library: Library) -> Any:
    return library("pai_node_labels")


def node(labels: dict[str, str], taints: list[dict[str, str]] | None = None) -> dict[str, Any]:
    return {"metadata": {"labels": labels}, "spec": {"taints": taints} if taints else {}}


def applied(found: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """What the API server makes of a merge patch."""

    def merge(old: dict[str, Any], new: dict[str, Any]) -> None:
        for key, value in new.items():
            if value is None:
                old.pop(key, None)
            elif isinstance(value, dict):
                merge(old.setdefault(key, {}), value)
            else:
                old[key] = value

    after = copy.deepcopy(found)
    merge(after, change)
    return after


@pytest.mark.parametrize(
    "note",
    [
        "[" * 100_000,
        "{",
        "[]",
        "3",
        '{"labels": 1, "taints": []}',
        '{"labels": [{}, 1]}',
        '{"labels": [{}], "taints": [[]]}',
    ],
)
def test_a_note_that_the_kubelet_forged_owns_nothing(labels: Any, note: str) -> None:
    before = node({"rack": "r0"}, [{"key": "a", "effect": "NoSchedule"}])
    before["metadata"]["annotations"] = {labels.OWNED: note}
    after = applied(before, labels.patch(before, {"rack": "r1"}, []))
    assert after["metadata"]["labels"] == {"rack": "r1"}
    assert after["spec"]["taints"] == before["spec"]["taints"]
    assert json.loads(after["metadata"]["annotations"][labels.OWNED]) == {"labels": ["rack"], "taints": []}


def test_labels_and_taints_are_put_beside_those_of_others(labels: Any) -> None:
    before = node({"kubernetes.io/os": "linux"}, [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
    change = labels.patch(before, {"rack": "r1"}, ["dedicated=training:NoSchedule"])
    after = applied(before, change)
    assert after["metadata"]["labels"] == {"kubernetes.io/os": "linux", "rack": "r1"}
    assert after["spec"]["taints"] == [
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
        {"key": "dedicated", "value": "training", "effect": "NoSchedule"},
    ]


def test_what_is_no_longer_wanted_is_taken_off_and_nothing_else(labels: Any) -> None:
    before = node({"admin": "yes"})
    ours = applied(before, labels.patch(before, {"rack": "r1", "pool": "a"}, ["t=1:NoExecute"]))
    assert applied(ours, labels.patch(ours, {"pool": "b"}, []))["metadata"]["labels"] == {"admin": "yes", "pool": "b"}
    bare = applied(ours, labels.patch(ours, {}, []))
    assert bare["metadata"]["labels"] == {"admin": "yes"}
    assert bare["metadata"]["annotations"] == {}
    assert bare["spec"]["taints"] == []


def test_taint_that_is_there_is_left_in_its_place(labels: Any) -> None:
    """Another order of taints is no change, and an empty value is none."""
    there = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "value": "2", "effect": "NoExecute"}]
    change = labels.patch(node({}, there), {}, ["b=2:NoExecute", "a=:NoSchedule"])
    assert set(change) == {"metadata"}
    assert json.loads(change["metadata"]["annotations"][labels.OWNED])["taints"] == ["a:NoSchedule", "b:NoExecute"]


@given(others=LABELS, first=LABELS, second=LABELS, marks=TAINTS, later=TAINTS)
def test_patch_converges_in_one_step_and_forgets_what_was_ours(
    labels: Any,
    others: dict[str, str],
    first: dict[str, str],
    second: dict[str, str],
    marks: list[str],
    later: list[str],
) -> None:
    state = node(dict(others))
    for wanted, words in ((first, marks), (second, later)):
        state = applied(state, labels.patch(state, wanted, words))
        assert labels.patch(state, wanted, words) == {}
        assert wanted.items() <= state["metadata"]["labels"].items()
    strangers = {key: value for key, value in others.items() if key not in {*first, *second}}
    assert state["metadata"]["labels"] == {**strangers, **second}


def test_drift_names_what_the_node_lacks(
    managed: Any, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    seen = node({"rack": "r2"}, [{"key": "t", "effect": "NoExecute"}])
    monkeypatch.setattr(managed.Kubectl, "get", lambda *_words, **_limits: seen)
    expected = {"kind": "node", "name": "w", "labels": {"rack": "r1"}, "taints": ["t=1:NoExecute"]}
    assert managed.drift([expected]) == snapshot
    assert managed.drift([{**expected, "labels": {"rack": "r2"}, "taints": ["t:NoExecute"]}]) == []

    def silent(*_words: str, **_limits: float) -> Any:
        raise managed.KubectlError("connection refused")

    monkeypatch.setattr(managed.Kubectl, "get", silent)
    assert managed.drift([expected]) == snapshot
