"""Prints a file with marks under the lines that have problems. Secrets in it are masked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache

from pydantic import SecretStr

from pai_install.documents.document import Document
from pai_install.documents.model_introspection import models_below, parts
from pai_install.documents.problem import Problem, printable, without_login
from pai_install.documents.validate import is_near, nearest
from pai_install.site.field_metadata import keys_of
from pai_install.site.layout_file import LayoutFile, MachineEntry, SshEntry
from pai_install.site.services import Services
from pai_install.site.settings import Settings

# possessive: a word is looked at once, however long it is
_KEY = re.compile(r"""(?<![\w.-])["']?(?P<key>[\w.-]++)["']?\s*+:(?=\s|$)""")
_SECRET = re.compile(r"pass|pwd|secret|token|_key|-key|htpasswd|credential", re.IGNORECASE)
# keys that look like a secret's and name a file
_NO_SECRET = re.compile(r"key[-_]file|secret-name", re.IGNORECASE)
_ELSEWHERE = re.compile(r"\s*(?:[{#]|$)")  # behind password-from: where the secret is


def annotate(document: Document) -> Iterator[str]:
    """Yields the file's lines, numbered, each followed by its problems."""
    by_line: dict[int, list[Problem]] = defaultdict(list)
    for problem in document.problems:
        by_line[problem.line].append(problem)
    yield document.file
    width = len(str(len(document.lines)))
    for number, line in enumerate(_masked(document), start=1):
        yield f"{number:>{width}} | {printable(line.expandtabs(4))}".rstrip()
        for problem in by_line.pop(number, []):
            yield from _mark(problem, " " * width)
    for problems in by_line.values():  # a place behind the last line, or a file that could not be read
        for problem in problems:
            yield from _mark(problem, " " * width)


def _mark(problem: Problem, margin: str) -> Iterator[str]:
    indent = " " * min(problem.column - 1, 80)
    yield f"{margin} | {indent}^ {problem.severity}: {problem.message}"
    if problem.remedy:
        yield f"{margin} | {indent}  {problem.remedy}"


def _masked(document: Document) -> Iterator[str]:
    """Yields the lines with secrets masked: values of secret keys become stars, including their continuation lines."""
    # The longest first: a short secret that is part of a long one would leave the rest of it in the line.
    known = sorted(set(_secrets(document.root)), key=len, reverse=True)
    hide_below: int | None = None
    for line in document.lines:
        depth = len(line) - len(line.lstrip())
        if hide_below is not None and (not line.strip() or depth > hide_below):
            yield " " * depth + ("********" if line.strip() else "")
            continue
        match = _secret_key_in(line)
        if match is None:
            hide_below = None
            yield _replaced(line, known)
            continue
        hide_below = depth
        yield f"{_replaced(line[: match.end()], known)} ********" if line[match.end() :].strip() else line


def _secret_key_in(line: str) -> re.Match[str] | None:
    """The first key of a line that is a secret's, or is no key at all and most like a secret's."""
    return next((found for found in _KEY.finditer(line) if _is_secret(found, line)), None)


def _is_secret(found: re.Match[str], line: str) -> bool:
    key = found["key"]
    if key == "password-from" and _ELSEWHERE.match(line, found.end()):
        return False
    return _names_secret(key) or key in _typed_secrets() or _misspelt_secret(key)


def _names_secret(key: str) -> bool:
    return _SECRET.search(key) is not None and not _NO_SECRET.search(key)


def _holds_secret(key: object, value: object) -> bool:
    return _secret_key_in(f"{key}: {'x' if isinstance(value, str) else ''}") is not None


@cache
def _typed_secrets() -> frozenset[str]:
    """Returns the keys of services-configuration.yaml with a secret type."""
    return frozenset(
        info.alias or name
        for model in models_below(Services)
        for name, info in model.model_fields.items()
        if SecretStr in parts(info.annotation)
    )


@cache
def _known() -> frozenset[str]:
    return frozenset(name for model in (Settings, LayoutFile, MachineEntry, SshEntry) for name in keys_of(model))


@cache
def _known_secrets() -> tuple[str, ...]:
    return tuple(filter(_names_secret, sorted(_known())))


def _misspelt_secret(key: str) -> bool:
    """Returns whether the most similar known key is a secret."""
    if key in _known() or not is_near(key, _known_secrets()):
        return False
    return _names_secret(nearest(key, _known()))


def _secrets(value: object, *, secret: bool = False) -> Iterator[str]:
    """Every line of every text below a secret key."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _secrets(inner, secret=secret or _holds_secret(key, inner))
    elif isinstance(value, list):
        for inner in value:
            yield from _secrets(inner, secret=secret)
    elif secret and isinstance(value, str):
        # Very short lines would put stars into words all over the file.
        yield from (line.strip() for line in value.splitlines() if len(line.strip()) > 3)
    elif isinstance(value, str) and without_login(value) != value:
        yield value.rpartition("@")[0]  # whole: there may be spaces in it


def _replaced(line: str, known: Sequence[str]) -> str:
    for text in known:
        line = line.replace(text, "********")
    return line
