"""Where text that is not YAML went wrong: a quote or bracket is told where it opens, not where the parser gives up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import yaml
from yaml import Mark, MarkedYAMLError, ScalarToken

from pai_install.documents.nodes import EXPLAINING, UNGUARDED
from pai_install.system.words import plural

_MOST_EXPLAINED = 64 * 1024  # characters of a text whose quotes are looked for once more, slowly
_QUOTES = {"'", '"'}
_PIECES = re.compile(r"""(?<!\w)(?:'(?:[^']|'')*'|"(?:[^"\\]|\\.)*")|(?<!\S)\#[^\n]*|[\[\]{}]""", re.DOTALL)
_CLOSING = {"[": "]", "{": "}"}


class Syntax(NamedTuple):
    """A syntax error with its place. mark: None if the parser reports none."""

    mark: Mark | None
    message: str
    remedy: str = ""


def explain(error: MarkedYAMLError, text: str) -> Syntax:
    """Returns place and message of a parser's error. remedy "": it depends on the line."""
    opened = _unclosed(error, text)
    if opened is not None:
        return opened
    what = (error.problem or error.context or "cannot be read").strip().splitlines()[0]
    return Syntax(error.problem_mark or error.context_mark, what)


def _unclosed(error: MarkedYAMLError, text: str) -> Syntax | None:
    context, start = str(error.context or ""), error.context_mark
    if "quoted scalar" in context and start is not None and "found unexpected" in str(error.problem):
        return Syntax(start, "the quote that opens here is not closed", "close it where the text ends")
    if "flow" in context and start is not None and not _is_closed(text[start.index :]):
        return Syntax(start, "the bracket that opens here is not closed", "close it where the list or mapping ends")
    if error.problem_mark is None or len(text) > _MOST_EXPLAINED:
        return None
    for token in _quoted_lines(text):
        if token.end_mark.line == error.problem_mark.line and token.end_mark.index <= error.problem_mark.index:
            distance = plural(token.end_mark.line - token.start_mark.line, "line")
            message = f"the quote that opens here is closed {distance} further down"
            return Syntax(token.start_mark, message, "close it where the text ends")
    return None


def _is_closed(text: str) -> bool:
    """Whether the bracket at the beginning has its counterpart."""
    waiting: list[str] = []
    for piece in _PIECES.finditer(text):
        if piece[0] in _CLOSING:
            waiting.append(_CLOSING[piece[0]])
        elif piece[0] in {"]", "}"}:
            if not waiting or waiting.pop() != piece[0]:
                return False
            if not waiting:
                return True
    return False


def _quoted_lines(text: str) -> Iterator[ScalarToken]:
    """Yields the texts in quotes that go over several lines, as far as the parser gets."""
    try:
        for token in yaml.scan(text, Loader=EXPLAINING):
            if (
                isinstance(token, ScalarToken)
                and token.style in _QUOTES
                and token.end_mark.line > token.start_mark.line
            ):
                yield token
    except (*UNGUARDED, NotImplementedError):
        return
