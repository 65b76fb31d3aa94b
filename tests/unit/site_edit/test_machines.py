"""Machines in the text of layout.yaml: comments and everything else stay."""

from __future__ import annotations

import yaml
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pai_install.site_edit.machines import with_absent, with_machine, with_present, with_values, without_machines

TEXT = """\
# the machines of the first room
machine-list:
  # the control plane
  - hostname: master  # do not touch
    hostip: 10.0.0.1
  - hostname: one
    hostip: 10.0.0.2  # upper rack
    absent: true

  # flow is fine, too
  - {hostname: two, hostip: 10.0.0.3}
machine-sku: {}
"""
NAMES = st.lists(st.sampled_from(["one", "two", "three"]), unique=True)


def names(text: str) -> list[str]:
    return [one["hostname"] for one in yaml.safe_load(text)["machine-list"]]


def test_a_machine_comes_last_and_nothing_else_changes() -> None:
    made = with_machine(TEXT, {"hostname": "three", "hostip": "10.0.0.4", "pai-worker": "true"})
    assert names(made) == ["master", "one", "two", "three"]
    assert [line for line in TEXT.splitlines() if line not in made.splitlines()] == []


def test_a_machine_goes_and_comments_of_others_stay(snapshot: SnapshotAssertion) -> None:
    made = without_machines(TEXT, ("one", "no such machine"))
    assert names(made) == ["master", "two"]
    assert "# do not touch" in made
    assert made == snapshot
    assert "# upper rack" not in made


def test_marks_are_set_and_taken_back() -> None:
    assert yaml.safe_load(with_absent(TEXT, ("two",)))["machine-list"][2]["absent"] is True
    assert yaml.safe_load(with_present(TEXT, ("one",)))["machine-list"][1]["absent"] is False
    assert with_absent(TEXT, ()) == TEXT


def test_values_of_a_machine_are_set() -> None:
    made = with_values(TEXT, "two", {"hostip": "10.0.0.9", "machine-type": "a100"})
    assert yaml.safe_load(made)["machine-list"][2] == {"hostname": "two", "hostip": "10.0.0.9", "machine-type": "a100"}


def test_a_byte_order_mark_stays() -> None:
    assert without_machines("\ufeff" + TEXT, ("one",)) == "\ufeff" + without_machines(TEXT, ("one",))


@given(gone=NAMES)
def test_only_the_named_machines_go_in_any_order(gone: list[str]) -> None:
    made = without_machines(TEXT, gone)
    assert names(made) == [name for name in ("master", "one", "two") if name not in gone]
    assert made == without_machines(TEXT, list(reversed(gone)))


@given(gone=NAMES)
def test_taken_out_and_put_back_the_data_is_what_it_was(gone: list[str]) -> None:
    before = {one["hostname"]: one for one in yaml.safe_load(TEXT)["machine-list"]}
    made = without_machines(TEXT, gone)
    for name in gone:
        if name in before:
            made = with_machine(made, {key: str(value).lower() for key, value in before[name].items()})
    after = {one["hostname"]: one for one in yaml.safe_load(made)["machine-list"]}
    assert after == before
