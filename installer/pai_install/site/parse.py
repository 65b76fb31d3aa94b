"""YAML text -> a Document; what is not YAML gives a problem, never an exception."""

from __future__ import annotations

import re

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import Node
from ruamel.yaml.reader import ReaderError

from pai_install.site.document import Document, Entries, Items, Mark, Text
from pai_install.site.tree import MAX_DEPTH, TooMuchError, TreeBuilder, mark_of


def split_lines(text: str) -> tuple[str, ...]:
    """The lines of a text without their ends, divided where YAML divides them; at least one."""
    return tuple(re.split("\r\n|[\r\n\x85\u2028\u2029]", text))


def parse_document(text: str, document: Document, *, top: str = "a mapping") -> None:
    """Fills `document` from YAML text."""
    document.lines = split_lines(text)
    node = None if _too_deep(document) else _compose(text, document)
    if node is None:
        if not document.problems:
            document.add((), "site.empty", f"is empty; {top} is expected", "pai-install init writes a commented start")
        return
    try:
        root = TreeBuilder(document).build(node)
    except TooMuchError as error:
        remedy = "is an alias (*name) inside the thing it names?"
        document.add((), "site.size", "holds more than a site can", remedy, mark=error.mark)
        return
    if isinstance(root, Entries):
        document.root = root
        return
    found = "a list" if isinstance(root, Items) else "text" if isinstance(root, Text) else "nothing"
    document.add(
        (), "site.type", f"{top} is expected at the top, found {found}", "is it the right file?", mark=mark_of(node)
    )


def _too_deep(document: Document) -> bool:
    """Whether a line opens so many brackets that the parser would take minutes over it."""
    for number, line in enumerate(document.lines, start=1):
        if line.count("[") + line.count("{") <= MAX_DEPTH:
            continue
        depth = 0
        for column, letter in enumerate(line, start=1):
            depth += (letter in "[{") - (letter in "]}")
            if depth > MAX_DEPTH:
                document.add(
                    (), "site.size", "is nested too deeply", "is it the right file?", mark=Mark(number, column)
                )
                return True
    return False


def _compose(text: str, document: Document) -> Node | None:
    yaml = YAML(typ="safe", pure=True)
    yaml.composer.warn_double_anchors = False
    try:
        node = yaml.compose(text)
    except ReaderError as error:
        before = split_lines(text[: error.position])
        mark = Mark(len(before), len(before[-1]) + 1)
        document.add((), "site.syntax", "holds a character that YAML does not allow", "is it a text file?", mark=mark)
    except MarkedYAMLError as error:
        place = error.problem_mark or error.context_mark
        mark = Mark(place.line + 1, place.column + 1) if place else Mark(1, 1)
        what = (error.problem or error.context or "cannot be read").strip().splitlines()[0]
        document.add((), "site.syntax", f"is not YAML: {what}", _syntax_remedy(what, document, mark), mark=mark)
    except RecursionError:
        document.add((), "site.syntax", "is nested too deeply")
    except (
        YAMLError,
        ValueError,
        LookupError,
        AttributeError,
        TypeError,
        AssertionError,
        NotImplementedError,
    ) as error:
        # the parser has a few unguarded corners; whatever it trips over is the file's fault
        document.add((), "site.syntax", f"is not YAML: {type(error).__name__}")
    else:
        return node if isinstance(node, Node) else None
    return None


def _syntax_remedy(what: str, document: Document, mark: Mark) -> str:
    line = document.lines[mark.line - 1] if mark.line <= len(document.lines) else ""
    if "'\\t'" in what or line.lstrip(" ").startswith("\t"):
        return "indent with spaces; YAML does not allow tabs"
    if "mapping values are not allowed" in what:
        return "check the indentation, and quote text that contains ': '"
    if "another document" in what:
        return "remove the second '---'"
    if "undefined alias" in what or "alias" in what:
        return "quote text that starts with '*' or '&'"
    if "end of stream" in what or "stream end" in what:
        return "a quote or bracket is opened and not closed"
    return ""
