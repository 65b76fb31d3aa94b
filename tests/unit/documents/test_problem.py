"""How problems are worded and where they are placed."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.documents.problem import Problem, SiteInvalid, dotted, printable, short, text_lines
from pai_install.errors import ExitCode

ERROR = Problem("x/layout.yaml", 12, 5, "machine-list[3].hostip", "error", "site.ip-address", "is none", "write one")
WARNING = Problem("x/config.yaml", 1, 1, "", "warning", "site.x", "is odd")


def test_a_problem_is_one_line_that_editors_can_follow(snapshot: SnapshotAssertion) -> None:
    assert str(ERROR) == snapshot
    assert str(WARNING) == "x/config.yaml:1:1: is odd"


def test_remedies_stand_below_and_warnings_are_named() -> None:
    assert list(text_lines([ERROR, WARNING])) == [str(ERROR), "    write one", f"{WARNING} (warning)"]


def test_the_json_form_has_a_key_per_field() -> None:
    assert list(ERROR.as_json()) == ["file", "line", "column", "path", "severity", "code", "message", "remedy"]


@pytest.mark.parametrize(("errors", "words"), [(1, "the site has an error"), (2, "the site has 2 errors")])
def test_an_invalid_site_counts_errors_and_keeps_everything(errors: int, words: str) -> None:
    invalid = SiteInvalid([ERROR] * errors + [WARNING])
    assert invalid.message == words
    assert invalid.exit_code is ExitCode.SITE_INVALID
    assert len(invalid.problems) == errors + 1
    assert "is odd" not in invalid.details


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("a",), "a"),
        (("a", "b"), "a.b"),
        (("a", 0, 1, "b"), "a[0][1].b"),
        (("a\x1bb",), "a?b"),
        (("k" * 100,), "k" * 57 + "..."),
    ],
)
def test_paths(path: tuple[str | int, ...], text: str) -> None:
    assert dotted(path) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("é", "é"),
        ("a\nb\x00\ud800\u202e", "a?b???"),
        ("http://user:secret@host/x", "http://********@host/x"),
        ("https://token@host and http://u:p@other", "https://********@host and http://********@other"),
        ("mail@example.com", "mail@example.com"),
        ("alice:secret@host:3128 is not", "********@host:3128 is not"),
        ("'alice:sec/r@et@host'", "'********@host'"),
        ("http://alice:sec/ret@host", "http://********@host"),
        ("busybox:1.2@sha256:" + "0" * 64, "busybox:1.2@sha256:" + "0" * 64),
    ],
)
def test_what_may_be_shown(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_long_texts_are_cut_after_logins_are_hidden() -> None:
    assert short("http://" + "u" * 40 + ":secret@host") == "http://********@host"
    assert short("alice:" + "p" * 600 + "@host") == "********@host"
    assert short("alice:my secret@host") == "********@host"
    assert len(short("x" * 10_000)) == 60
