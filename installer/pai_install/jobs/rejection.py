"""The API server's rejection of a job -> the field of its file. Pure."""

from __future__ import annotations

import re

from pai_install.documents.document import Document
from pai_install.documents.problem import YamlPath

# a path as webhooks and the API server write it, or a quoted name of a field
_PATH = re.compile(r"\b(?:spec|metadata)(?:\.[A-Za-z][\w-]*|\[\d{1,4}\])+")
_PART = re.compile(r"\.?([A-Za-z][\w-]*)|\[(\d+)\]")
_QUOTED = re.compile(r"'([A-Za-z]{3,40})'|\b([a-z]+(?:[A-Z][a-z]+)+)\b")


def rejected_field(document: Document, words: str) -> YamlPath:
    """Returns the path of the field that the words name, or of its nearest existing parent. ()  without a field."""
    for found in _PATH.finditer(words):
        path = _existing(document, tuple(_parts(found.group())))
        if len(path) > 1:
            return path
    names = {quoted or camel for quoted, camel in _QUOTED.findall(words)}
    return next((path for path in document.marks if path[:1] == ("spec",) and path[-1] in names), ())


def _parts(text: str) -> YamlPath:
    return tuple(int(index) if index else name for name, index in _PART.findall(text))


def _existing(document: Document, path: YamlPath) -> YamlPath:
    """The longest beginning of a path that the file has. A webhook may write `task` for the list `tasks`."""
    done: YamlPath = ()
    for part in path:
        several = (*done, f"{part}s") if isinstance(part, str) else done
        one = next((way for way in ((*done, part), several) if way != done and document.at(way) is not None), None)
        if one is None:
            break
        done = one
    return done
