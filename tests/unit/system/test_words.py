"""Lists and numbers in sentences."""

from __future__ import annotations

import pytest

from pai_install.system.words import clipped, plural, shortened


@pytest.mark.parametrize(
    ("items", "most", "text"),
    [([], 2, ""), (["a"], 2, "a"), (["a", "b"], 2, "a, b"), (["a", "b", "c"], 2, "a, b and 1 more"),
     (dict.fromkeys("abcdef"), 5, "a, b, c, d, e and 1 more")],
)  # fmt: skip
def test_long_lists_are_cut(items: list[str], most: int, text: str) -> None:
    assert shortened(items, most) == text


def test_another_separator() -> None:
    assert shortened([1, 2, 3], 2, separator="; ") == "1; 2 and 1 more"


@pytest.mark.parametrize(("count", "text"), [(0, "0 machines"), (1, "1 machine"), (2, "2 machines")])
def test_numbers_have_their_noun(count: int, text: str) -> None:
    assert plural(count, "machine") == text


def test_irregular_words() -> None:
    assert plural(2, "entry", "entries") == "2 entries"


@pytest.mark.parametrize(("text", "shown"), [("", ""), ("abcdef", "abcdef"), ("abcdefg", "abc...")])
def test_a_long_text_is_clipped(text: str, shown: str) -> None:
    assert clipped(text, 6) == shown
