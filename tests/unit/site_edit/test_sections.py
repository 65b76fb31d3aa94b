"""Whole sections put in and taken out: the rest of the text stays to the letter."""

from __future__ import annotations

import pytest
import yaml

from pai_install.site_edit.sections import with_block, with_sections, without_sections
from pai_install.site_edit.spans import EditError

TEXT = """\
# ours
hivedscheduler:
  # how it was
  config: |   # a block
    physicalCluster: {}

    # inside
    virtualClusters: {}
  webservice-port: 30096   # keep

scheduler: {type: kueue}
# below
virtual-clusters:
  - name: a
    pinned: [g1]

storages: []   # none
"""
SECTIONS = "# new\nhealth:\n  a: 1\n"
BLOCK = "physicalCluster:\n  skuTypes: {}\n\nvirtualClusters: {}\n"


@pytest.mark.parametrize("text", [TEXT, TEXT.rstrip("\n"), f"\ufeff{TEXT}"])
def test_sections_are_put_at_the_end(text: str) -> None:
    made = with_sections(text, SECTIONS)
    assert made.startswith(text)
    assert made.endswith(SECTIONS.rstrip("\n") if not text.endswith("\n") else SECTIONS)
    assert yaml.safe_load(made.removeprefix("\ufeff"))["health"] == {"a": 1}


def test_line_ends_stay(tmp_path: object) -> None:
    del tmp_path
    made = with_sections(TEXT.replace("\n", "\r\n"), SECTIONS)
    assert made.count("\n") == made.count("\r\n")


def test_sections_may_be_all_that_there_is() -> None:
    assert with_sections("", SECTIONS) == SECTIONS


def test_sections_are_taken_out() -> None:
    made = without_sections(TEXT, ("scheduler", "virtual-clusters", "health"))
    assert made == TEXT.replace("scheduler: {type: kueue}\n", "", 1).replace(
        "virtual-clusters:\n  - name: a\n    pinned: [g1]\n", ""
    )
    assert without_sections("", ("scheduler",)) == ""


def test_a_block_takes_the_place_of_the_one_that_is_there() -> None:
    made = with_block(TEXT, "hivedscheduler", "config", BLOCK)
    section = yaml.safe_load(made)["hivedscheduler"]
    assert section == {"config": BLOCK, "webservice-port": 30096}
    head, tail = TEXT.partition("  config:")[0], TEXT[TEXT.index("  webservice-port") :]
    assert made.startswith(head)
    assert made.endswith(tail)


@pytest.mark.parametrize(
    "text",
    ["", "# nothing\n", "storages: []\n", "hivedscheduler:\n", "hivedscheduler:\nstorages: []\n",
     "hivedscheduler:\n    webservice-port: 30096\nstorages: []\n", "hivedscheduler:\n  config: {a: {b: 1}}\n",
     "hivedscheduler:\n  config: 'a: 1'   # text\n", "hivedscheduler:\n  config: |\n    a: 1"],
)  # fmt: skip
def test_a_block_is_put_where_there_is_none(text: str) -> None:
    made = with_block(text, "hivedscheduler", "config", BLOCK)
    before = yaml.safe_load(text) or {}
    after = yaml.safe_load(made)
    assert after["hivedscheduler"]["config"] == BLOCK
    kept = {key: value for key, value in (before.get("hivedscheduler") or {}).items() if key != "config"}
    assert after == {**before, "hivedscheduler": {**kept, "config": BLOCK}}


@pytest.mark.parametrize(
    "text", ["{hivedscheduler: {webservice-port: 30096}}\n", "hivedscheduler: {webservice-port: 30096}\n"]
)
def test_what_is_in_braces_is_refused(text: str) -> None:
    with pytest.raises(EditError):
        with_block(text, "hivedscheduler", "config", BLOCK)


def test_a_text_in_braces_takes_no_sections() -> None:
    with pytest.raises(EditError):
        with_sections("{storages: []}\n", SECTIONS)


def test_a_section_that_others_need_is_refused() -> None:
    with pytest.raises(EditError):
        without_sections("scheduler: &a {type: kueue}\nother: *a\n", ("scheduler",))
