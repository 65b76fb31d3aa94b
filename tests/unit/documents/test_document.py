"""Reading YAML files: places, text as written, and everything that can be wrong with a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.documents.document import Document, Mark, Text
from pai_install.documents.parse import parse_document
from pai_install.documents.reader import MAX_BYTES, read_document


def parse(text: str) -> Document:
    document = Document("site.yaml")
    parse_document(text, document)
    return document


def codes(document: Document) -> list[str]:
    return [problem.code for problem in document.problems]


def test_every_key_and_item_has_its_place() -> None:
    document = parse("a:\n  b: 1\nc:\n  - x\n  - y: 2\n")
    assert document.marks[("a",)] == Mark(1, 1)
    assert document.marks[("a", "b")] == Mark(2, 3)
    assert document.marks[("c", 0)] == Mark(4, 5)
    assert document.marks[("c", 1, "y")] == Mark(5, 5)


def test_the_place_of_what_is_missing_is_that_of_its_parent() -> None:
    document = parse("\na:\n  b: 1\n")
    assert document.mark(("a", "zzz", "deeper")) == Mark(2, 1)
    assert document.mark(("nothing",)) == Mark(1, 1)


@pytest.mark.parametrize(
    ("written", "text", "plain"),
    [
        ("1.40", "1.40", True),
        ("010", "010", True),
        ("yes", "yes", True),
        ('"true"', "true", False),
        ("'x'", "x", False),
        ("12:30", "12:30", True),
        ('""', "", False),
        ("|\n  two\n  lines", "two\nlines\n", False),
    ],
)
def test_scalars_stay_as_written(written: str, text: str, plain: bool) -> None:
    value = parse(f"key: {written}\n").content["key"]
    assert isinstance(value, Text)
    assert (value, value.plain) == (text, plain)


@pytest.mark.parametrize("written", ["", "~", "null", "Null", "NULL"])
def test_null_is_none(written: str) -> None:
    assert parse(f"key: {written}\n").content == {"key": None}


def test_quoted_null_is_text() -> None:
    assert parse('key: "null"\n').content == {"key": "null"}


def test_vault_text_is_recognised() -> None:
    value = parse("key: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162\n").content["key"]
    assert value.vault
    assert value.startswith("$ANSIBLE_VAULT;")


def test_merge_keys_fill_in_and_never_override() -> None:
    document = parse("base: &b {x: 1, y: 2}\nother: &o {y: 3, z: 4}\nall:\n  <<: [*b, *o]\n  x: 9\n")
    assert document.content["all"] == {"x": "9", "y": "2", "z": "4"}
    assert document.problems == []


def test_an_alias_is_placed_where_its_text_is() -> None:
    document = parse("a: &a\n  k: v\nb: *a\n")
    assert document.content["b"] == {"k": "v"}
    assert document.mark(("b", "k")) == Mark(2, 3)


def test_the_first_of_a_duplicate_wins_and_the_second_is_named() -> None:
    document = parse("a: 1\nb: 2\na: 3\n")
    assert document.content == {"a": "1", "b": "2"}
    [problem] = document.problems
    assert (problem.line, problem.path, problem.message) == (3, "a", "is given twice, first in line 1")


def test_byte_order_mark_and_dos_line_ends_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    document = read_document(path)
    assert document.content == {"a": "1", "b": "2"}
    assert document.marks[("b",)] == Mark(2, 1)
    assert document.lines[1] == "b: 2"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "site.empty"),
        ("# only this\n", "site.empty"),
        ("- a\n", "site.type"),
        ("word\n", "site.type"),
        ("null\n", "site.type"),
        ("a: [1\n", "site.syntax"),
        ("a: 'x\n", "site.syntax"),
        ("a:\n\tb: 1\n", "site.syntax"),
        ("a: 1\n---\nb: 2\n", "site.syntax"),
        ("a: *nobody\n", "site.syntax"),
        ("%YAML 9.9.9\n---\na: 1\n", "site.syntax"),
        ("a: \x07\n", "site.syntax"),
        ("a: !!binary aGk=\n", "site.tag"),
        ("a: !mine x\n", "site.tag"),
        ("{a: 1}: x\n", "site.key"),
        ('"": x\n', "site.key"),
        ("a: {<<: 1}\n", "site.merge"),
        ('a: "\\ud800"\n', "site.characters"),
        ("a: &a [*a]\n", "site.size"),
        ("a: &a {<<: *a}\n", "site.size"),
        ("[" * 5000, "site.size"),
        ("\n".join("[" * 5000), "site.syntax"),
    ],
)
def test_what_is_wrong_with_a_file(text: str, code: str) -> None:
    assert code in codes(parse(text))


def test_deep_nesting_is_refused_at_its_place() -> None:
    document = parse("a: " + "[" * 80 + "]" * 80 + "\n")
    assert codes(document) == ["site.size"]


def test_text_that_is_not_utf8_is_placed_at_its_byte(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"a: 1\nb: caf\xe9\n")
    [problem] = read_document(path).problems
    assert (problem.line, problem.column, problem.code) == (2, 7, "site.encoding")


def test_files_that_are_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"#" * (MAX_BYTES + 1))
    found = {name: codes(read_document(tmp_path / name)) for name in ("absent", "pipe", "large", ".", "a\0b")}
    assert found == {
        "absent": ["site.no-file"],
        "pipe": ["site.no-file"],
        "large": ["site.file-size"],
        ".": ["site.no-file"],
        "a\0b": ["site.no-file"],
    }


@pytest.mark.parametrize(
    ("there", "remedy"),
    [("layout.yml", "rename layout.yml"), ("master.csv", "pai-install migrate"), ("other", "pai-install init")],
)
def test_a_missing_file_says_what_is_there_instead(tmp_path: Path, there: str, remedy: str) -> None:
    (tmp_path / there).write_text("x")
    [problem] = read_document(tmp_path / "layout.yaml").problems
    assert remedy in problem.remedy


def test_messages_never_hold_what_a_terminal_obeys(snapshot: SnapshotAssertion) -> None:
    document = parse('"\\e[31mred": 1\n')
    document.add(("\x1b[31mred",), "site.x", "value \x1b[0m\u202e", "\x00")
    [problem] = document.problems
    assert str(problem) == snapshot
    assert problem.remedy == "?"


def test_the_whole_document_is_plain_containers() -> None:
    content: Any = parse("a: {b: [1, {c: d}]}\n").content
    assert content == {"a": {"b": ["1", {"c": "d"}]}}
