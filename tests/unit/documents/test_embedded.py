"""The places of what is inside a scalar, however the scalar is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.compat import StringIO
from ruamel.yaml.scalarstring import (
    DoubleQuotedScalarString,
    FoldedScalarString,
    LiteralScalarString,
    SingleQuotedScalarString,
)

from pai_install.documents.document import Document, Entries, Mark, Text
from pai_install.documents.embedded import Places
from pai_install.documents.parse import parse_document, parse_embedded


def outer(text: str) -> tuple[Document, Text]:
    """The document, and its scalar `a`."""
    document = Document("f.yaml", Path())
    parse_document(text, document)
    value = document.content["a"]
    assert isinstance(value, Text)
    return document, value


@pytest.mark.parametrize(
    "text",
    [
        "a: |\n  k: v\n  wanted: x\n",
        "a: |-  # why\n      k: v\n      wanted: x\n",
        "a: |2\n  k: v\n  wanted: x\n",
        "\n\nb: 1\na: |\n\n  k: v\n\n  # more\n  wanted: x\n",
        "a: >\n  k: v\n\n  wanted: x\n",
        'a: "k: v\\nwanted: x"\n',
        'a: "k: v\\n\\\n   wanted: x"\n',
        'a: "k: \\"\\u00e9\\x20\\"\\n\\twanted: x"\n'.replace("\\t", ""),
        "a: 'k: ''v''\n\n  wanted: x'\n",
        "a: !!str |\n  k: v\n  wanted: x\n",
        "a: &name !!str\n  '{k: v, wanted: x}'\n",
        "b: {a: 1}\na: '{wanted: x}'\n",
        "b: &one |\n  wanted: x\na: *one\n",
        "a: '{k: v,\n\n     wanted: x}'\n",
    ],
)
def test_a_key_inside_is_at_its_own_place(text: str) -> None:
    document, value = outer(text)
    root = parse_embedded(value, document)
    assert isinstance(root, Entries), document.problems
    line, column = document.mark(("a", "wanted"))
    assert document.lines[line - 1][column - 1 :].startswith("wanted")
    assert root["wanted"].mark == Mark(line, column + len("wanted: "))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: |\n  k: [1\n", (2, 6)),
        ("a: 'k: [1'\n", (1, 8)),
        ("a: 'none'\n", (1, 5)),
        ("a: none\n", (1, 4)),
        ("a: |\n  k: v\n  k: w\n", (3, 3)),
        ("a: |\n  - v\n", (2, 3)),
        ("a: |\n  k: {{ x }}\n", (2, 7)),
        ("a: |\n  x: *y\n", (2, 6)),
    ],
)
def test_what_is_wrong_inside_is_told_at_its_own_place(text: str, place: tuple[int, int]) -> None:
    document, value = outer(text)
    parse_embedded(value, document)
    [problem] = document.problems
    assert (problem.line, problem.column) == place
    assert problem.path.startswith("a")


def test_a_duplicate_names_the_files_line() -> None:
    document, value = outer("b: 1\na: |\n  k: v\n  k: w\n")
    parse_embedded(value, document)
    assert "first in line 3" in document.problems[0].message


@pytest.mark.parametrize("text", ["a: ''\n", "a: '  '\n", "a: |\n  # only a comment\n"])
def test_nothing_inside_is_no_problem(text: str) -> None:
    document, value = outer(text)
    assert parse_embedded(value, document) is None
    assert document.problems == []


def test_all_places_of_empty_text_are_its_own() -> None:
    document, value = outer("b: 1\na: ''\n")
    assert Places(value, document.lines).at(0) == Mark(2, 1)


@settings(deadline=None)
@given(
    value=st.text(st.sampled_from("ab'\"\\ :\n\té💥"), min_size=1, max_size=40),
    style=st.sampled_from(["|", ">", "'", '"', ""]),
)
def test_every_letter_is_where_it_is_written(value: str, style: str) -> None:
    kinds = {
        "|": LiteralScalarString,
        ">": FoldedScalarString,
        "'": SingleQuotedScalarString,
        '"': DoubleQuotedScalarString,
        "": str,
    }
    stream = StringIO()
    writer = YAML()
    writer.width = 20
    writer.dump({"a": kinds[style](value)}, stream)
    document = Document("f.yaml", Path())
    parse_document(stream.getvalue(), document)
    written = document.content.get("a")
    if not isinstance(written, Text):
        return
    places = Places(written, document.lines)
    for index, letter in enumerate(written):
        line, column = places.at(index)
        assert 1 <= line <= len(document.lines)
        if not letter.isspace():
            found = document.lines[line - 1][column - 1 : column]
            assert found in (letter, "\\"), (stream.getvalue(), index)
