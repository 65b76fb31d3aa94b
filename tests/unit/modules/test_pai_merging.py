"""Merging into JSON objects keeps what is the admin's, and what other owners merged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

plain = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abcd"), plain, max_size=4)


def test_lists_are_united_and_name_value_words_replaced(merging: Any) -> None:
    admin = {"exec-opts": ["native.cgroupdriver=cgroupfs", "isolation=x"], "dns": ["10.0.0.2"], "debug": True}
    merged = merging.merge(admin, {"exec-opts": ["native.cgroupdriver=systemd"], "dns": ["10.0.0.3"]})
    assert merged == {
        "exec-opts": ["isolation=x", "native.cgroupdriver=systemd"],
        "dns": ["10.0.0.2", "10.0.0.3"],
        "debug": True,
    }


def test_merging_what_is_there_keeps_the_admins_order(merging: Any) -> None:
    admin = {"dns": ["b", "a"]}
    assert merging.merge(admin, {"dns": ["a"]}) == admin


@given(base=objects, patch=objects)
def test_merging_twice_is_merging_once(base: dict[str, Any], patch: dict[str, Any], merging: Any) -> None:
    once = merging.merge(base, patch)
    assert merging.merge(once, patch) == once


@given(base=objects, patch=objects)
def test_what_was_merged_is_there_and_can_be_taken_out(
    base: dict[str, Any], patch: dict[str, Any], merging: Any
) -> None:
    disjoint = {key: value for key, value in base.items() if key not in patch}
    merged = merging.merge(disjoint, patch)
    assert all(merged[key] == value for key, value in patch.items())
    assert merging.subtract(merged, patch) == disjoint


@pytest.fixture
def kept(merging: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module with its memory below the test's folder."""
    monkeypatch.setattr(merging, "MERGED_DIR", str(tmp_path / "merged"))
    return merging


def merge_in(kept: Any, current: dict[str, Any], owner: str, patch: dict[str, Any]) -> dict[str, Any]:
    """What the object becomes, remembered."""
    found: dict[str, Any] = kept.merged("/d.json", owner, current, patch)
    kept.keep_patch("/d.json", owner, patch)
    return found


def test_owners_take_out_nothing_of_each_other(kept: Any) -> None:
    first = merge_in(kept, {"dns": ["own"]}, "", {"dns": ["a", "both"], "debug": True})
    both = merge_in(kept, first, "two", {"dns": ["b", "both"]})
    assert both == {"dns": ["own", "a", "b", "both"], "debug": True}
    without_first = merge_in(kept, both, "", {})
    assert without_first == {"dns": ["own", "b", "both"]}, "the word that the other owner names, too, stays"
    assert merge_in(kept, without_first, "two", {}) == {"dns": ["own"]}


def test_owner_without_a_memory_takes_nothing_out(kept: Any) -> None:
    assert merge_in(kept, {"dns": ["a"]}, "new", {"dns": ["b"]}) == {"dns": ["a", "b"]}


def test_empty_list_keeps_a_key_but_makes_none(kept: Any) -> None:
    """A key beside a flag of the same name ends dockerd; a key that is missing leaves a reloaded one what it had."""
    assert merge_in(kept, {}, "", {"mirrors": [], "auths": {}}) == {}
    filled = merge_in(kept, {}, "", {"mirrors": ["a"]})
    emptied = merge_in(kept, filled, "", {"mirrors": []})
    assert emptied == {"mirrors": []}
    assert merge_in(kept, emptied, "", {"mirrors": []}) == {"mirrors": []}


def expectation(path: Path, kept: Any, **words: Any) -> dict[str, Any]:
    """On a file that two write into."""
    rest = kept.digest_of_rest(json.loads(path.read_text()), ["mirrors"])
    return {"path": str(path), "owner": "", "live_keys": ["mirrors"], "sha256": rest, **words}


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ('{"mirrors": ["a"], "debug": true}', True),
        ('{"debug":true,"mirrors":["other","a"]}', True),
        ('{"debug": true, "mirrors": ["other"]}', False),
        ('{"debug": false, "mirrors": ["a"]}', False),
        ('{"debug": true, "mirrors": ["a"], "bip": "x"}', False),
        ("[]", False),
    ],
)
def test_drift_is_what_is_missing_of_ours_and_any_change_elsewhere(
    kept: Any, tmp_path: Path, text: str, *, held: bool
) -> None:
    path = tmp_path / "d.json"
    path.write_text('{"mirrors": ["a"], "debug": true}')
    kept.keep_patch(str(path), "", {"mirrors": ["a"], "debug": True})
    wanted = expectation(path, kept)
    path.write_text(text)
    assert (kept.merged_problem(wanted) == "") is held


def test_of_a_live_file_nothing_but_what_was_merged_counts(
    kept: Any, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    path = tmp_path / "config.json"
    kept.keep_patch(str(path), "r", {"auths": {"h": {"auth": "x"}}, "empty": [], "none": {}})
    wanted = {"path": str(path), "owner": "r", "live_keys": [], "sha256": ""}
    path.write_text('{"auths": {"h": {"auth": "x"}, "own": {"auth": "y"}}, "psFormat": "z"}')
    assert kept.merged_problem(wanted) == ""
    path.write_text('{"auths": {"own": {"auth": "y"}}}')
    assert kept.merged_problem(wanted) == snapshot


def test_what_is_remembered_is_for_root_alone(kept: Any) -> None:
    kept.keep_patch("/d.json", "r", {"auths": {}})
    assert Path(kept.patch_path("/d.json", "r")).stat().st_mode & 0o777 == 0o600
