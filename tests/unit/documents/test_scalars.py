"""Booleans, numbers and memory: OpenPAI's traps each have their meaning said."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from pai_install.documents.document import Document
from pai_install.documents.parse import parse_document
from pai_install.documents.scalars import plain_data
from pai_install.site import fields as f


class Sample(f.FileModel):
    """One field of each kind."""

    flag: f.Boolean = False
    switch: f.StrictBoolean = False
    count: f.Count = 1
    port: f.Port = 1
    memory: f.Memory = 1
    size: f.Size = 1
    word: f.Word = ""


def read(text: str) -> tuple[Sample, list[str]]:
    """The model of a text, and the codes of its warnings."""
    document = Document("x.yaml")
    parse_document(text, document)
    return Sample.model_validate(document.root, context=document), [problem.code for problem in document.problems]


def refused(text: str) -> str:
    """The code of the one error in a text."""
    with pytest.raises(ValidationError) as caught:
        read(text)
    [error] = caught.value.errors()
    return error["type"]


@pytest.mark.parametrize(
    ("written", "meaning", "warnings"),
    [
        ("true", True, []),
        ("True", True, []),
        ('"true"', True, []),
        ("'false'", False, []),
        ("FALSE", False, []),
        ("yes", True, ["site.boolean-word"]),
        ("off", False, ["site.boolean-word"]),
    ],
)
def test_booleans_in_every_spelling(written: str, *, meaning: bool, warnings: list[str]) -> None:
    sample, found = read(f"flag: {written}\n")
    assert (sample.flag, found) == (meaning, warnings)


@pytest.mark.parametrize(
    ("written", "meaning", "warnings"),
    [
        ("true", True, []),
        ('"true"', True, ["site.quoted-boolean"]),
        ("'false'", False, ["site.quoted-boolean"]),
        ("yes", True, ["site.boolean-word"]),
    ],
)
def test_quoted_booleans_that_openpai_dropped_say_so(written: str, *, meaning: bool, warnings: list[str]) -> None:
    sample, found = read(f"switch: {written}\n")
    assert (sample.switch, found) == (meaning, warnings)


@pytest.mark.parametrize("written", ["maybe", "1", "0", "y", "[]", "{}", '"tru e"'])
def test_what_is_no_boolean(written: str) -> None:
    assert refused(f"flag: {written}\n") == "site.boolean"


@pytest.mark.parametrize(("written", "number"), [("8", 8), ('"8"', 8), ("+8", 8), ("1_000", 1000)])
def test_whole_numbers(written: str, number: int) -> None:
    assert read(f"count: {written}\n")[0].count == number


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("0", "site.count"),
        ("-1", "site.count"),
        ("010", "site.octal"),
        ("8.0", "site.number"),
        ("0x8", "site.number"),
        ("1e3", "site.number"),
        ("eight", "site.number"),
        ("٨", "site.number"),
        ("9" * 5000, "site.number"),
        ("true", "site.number"),
        ("[8]", "site.number"),
    ],
)
def test_what_is_no_count(written: str, code: str) -> None:
    assert refused(f"count: {written}\n") == code


@pytest.mark.parametrize("written", ["0", "65536", "-22"])
def test_what_is_no_port(written: str) -> None:
    assert refused(f"port: {written}\n") == "site.port"


@pytest.mark.parametrize(
    ("written", "amount", "warnings"),
    [
        ("1Gi", 2**30, []),
        ("224", 224, ["site.quantity-unit"]),
        ("500k", 500_000, ["site.quantity-unit"]),
        ("1073741824", 2**30, ["site.quantity-unit"]),
    ],
)
def test_memory_without_a_unit_says_what_it_means(written: str, amount: int, warnings: list[str]) -> None:
    sample, found = read(f"memory: {written}\n")
    assert (sample.memory, found) == (amount, warnings)


@pytest.mark.parametrize("written", ["0", "0Gi", "220GB", "lots", "{}", "[1Gi]"])
def test_what_is_no_memory(written: str) -> None:
    assert refused(f"memory: {written}\n") == "site.quantity"


def test_a_tag_like_1_10_is_not_read_as_a_number() -> None:
    assert read("word: 1.10\n")[0].word == "1.10"


def test_text_on_two_lines_is_refused() -> None:
    assert refused("word: |\n  a\n  b\n") == "site.characters"


def test_keys_without_value_count_as_not_given() -> None:
    sample, found = read('count:\nword: ""\n')
    assert (sample, found) == (Sample(), ["site.empty-value"])


def test_models_can_be_made_in_python() -> None:
    sample = Sample(flag=True, switch=False, count=3, port=22, memory=2**30, word="x")
    assert isinstance(sample, BaseModel)
    assert sample.memory == 2**30


def test_free_content_is_plain_data() -> None:
    document = Document("x.yaml")
    parse_document(
        'a: {b: 1Gi, c: 12, d: -1, e: 1.5, f: yes, g: "12", h: "true", i: 010, j: ~, k: 1e3, l: [1, x]}\n', document
    )
    assert plain_data(document.content) == {
        "a": {
            "b": "1Gi", "c": 12, "d": -1, "e": 1.5, "f": True, "g": "12", "h": "true", "i": "010", "j": None,
            "k": "1e3", "l": [1, "x"],
        }
    }  # fmt: skip
    assert type(plain_data(document.content)["a"]["b"]) is str


@pytest.mark.parametrize(("written", "amount"), [("200Gi", 200 * 2**30), ("1.5Ti", 3 * 2**39), ("200G", 200 * 10**9)])
def test_sizes(written: str, amount: int) -> None:
    assert read(f"size: {written}\n")[0].size == amount


@pytest.mark.parametrize(
    "written", ["200", "0", "-1Gi", "200GiB", "200m", "1Mi", "2E+9Gi", "8Ei", "[1Gi]", "{a: 1}", "much"]
)
def test_what_is_no_size(written: str) -> None:
    assert refused(f"size: {written}\n") == "site.quantity"
