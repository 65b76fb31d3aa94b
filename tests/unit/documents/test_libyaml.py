"""Large files take another way to the same values and places."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.documents import libyaml, parse
from pai_install.documents.document import Document
from pai_install.site.load import read_site
from tests.site_cases import GOLDEN, cases
from tests.unit.site.sites import LAYOUT, large_layout, write_site

TEXTS = {
    **{path.relative_to(GOLDEN).as_posix(): path.read_text("utf-8-sig") for path in sorted(GOLDEN.rglob("*.yaml"))},
    **{case.name: case.text for case in cases()},
}


def parsed(text: str) -> Document:
    document = Document("x")
    parse.parse_document(text, document)
    return document


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_both_ways_give_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = parsed(text)
    monkeypatch.setattr(parse, "LARGE", -1)
    fast = parsed(text)
    assert (fast.root, fast.marks, fast.problems) == (slow.root, slow.marks, slow.problems)


@pytest.mark.parametrize(
    "text", ["", "a: *b\n", "%YAML 1.1\n---\na: 1\n", "a\n---\nb\n", "- " * 300 + "a\n", "a: [\n", "\0"]
)
def test_what_is_unusual_is_left_to_the_other_parser(text: str) -> None:
    assert libyaml.compose(text) is None


def test_without_libyaml_it_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("yaml.CSafeLoader")
    assert libyaml.compose(LAYOUT) is None


def test_a_large_layout_takes_the_quick_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse._Parser, "_compose", lambda *_: pytest.fail("the slow way"))
    monkeypatch.setattr(parse, "LARGE", 5)
    write_site(tmp_path, layout=large_layout(100))
    reading = read_site(tmp_path)
    assert reading.site is not None
    assert len(reading.site.machines) == 100
