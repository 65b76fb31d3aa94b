"""Parses YAML text to a Document. Invalid YAML adds a problem and never raises."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from yaml import MarkedYAMLError, Node, YAMLError
from yaml.reader import ReaderError

from pai_install.documents.document import Document, Entries, Items, Mark, Text
from pai_install.documents.embedded import Places
from pai_install.documents.nodes import EXPLAINING, UNGUARDED, TooDeepError, TooManyError, compose
from pai_install.documents.problem import YamlPath
from pai_install.documents.syntax import explain
from pai_install.documents.tree import MAX_DEPTH, Place, TooMuchError, TreeBuilder, own_place

# events of the parser, about two for each line. The loader that explains needs a second for as many
_MOST_IN_JOB = 50_000
_LINE = re.compile("[^\r\n\x85\u2028\u2029]+")


def split_lines(text: str) -> tuple[str, ...]:
    """Returns the lines of a text without their ends, split at YAML's line ends. At least one."""
    return tuple(re.split("\r\n|[\r\n\x85\u2028\u2029]", text))


def parse_document(text: str, document: Document, *, top: str = "a mapping", last_wins: bool = False) -> None:
    """Fills `document` from YAML text. last_wins: as in read_document."""
    document.lines = split_lines(text)

    def at(index: int) -> Mark:
        before = split_lines(text[:index])
        return Mark(len(before), len(before[-1]) + 1)

    document.root = _Parser(document, top, at, last_wins=last_wins).parse(text)
    _report_empty(document, top)


def parse_rewritten(
    rewritten: str, document: Document, origin: Callable[[int], int], *, top: str = "a mapping"
) -> None:
    """Parses text that was derived from a file, like parse_document, with places in the file.

    The document has the file's lines. origin: the number of a character -> its number in the file, with line ends of
    one character.
    """
    starts = [0, *accumulate(len(line) + 1 for line in document.lines)]

    def at(index: int) -> Mark:
        index = origin(index)
        line = min(bisect_right(starts, index), len(document.lines))
        return Mark(line, index - starts[line - 1] + 1)

    document.root = _Parser(document, top, at, lambda mark: at(mark.index)).parse(rewritten)
    _report_empty(document, top)


def _report_empty(document: Document, top: str) -> None:
    if document.root is None and not document.problems:
        remedy = "run pai-install init to create a site with comments" if document.of == "site" else ""
        document.add((), "site.empty", f"is empty, but {top} is expected", remedy)


def parse_embedded(text: Text, document: Document, *, top: str = "a mapping") -> Entries | None:
    """Parses YAML that a text of `document` contains. All places, including those of problems, refer to the file.

    Returns None if it is empty, has only comments, or is invalid: then problems were added.
    """
    places = Places(text, document.lines)
    return _Parser(document, top, places.at, lambda mark: places.at(mark.index), text.path).parse(str(text))


@dataclass(frozen=True)
class _Parser:
    """Parses one text of a document.

    at: the place of a character by its number. place: of a parser's mark. path: of the content.
    """

    document: Document
    top: str
    at: Callable[[int], Mark]
    place: Place = own_place
    path: YamlPath = ()
    last_wins: bool = False

    def parse(self, text: str) -> Entries | None:
        """Returns the mapping in the text, or None."""
        node = None if self._too_deep(text) else self._compose(text)
        if node is None:
            return None
        try:
            root = TreeBuilder(self.document, self.place, last_wins=self.last_wins).build(node, self.path)
        except TooMuchError as error:
            self._report(
                "site.size",
                f"holds more than a {self.document.of} can",
                error.mark,
                "is an alias (*name) inside the thing it names?",
            )
            return None
        if isinstance(root, Entries):
            return root
        found = "a list" if isinstance(root, Items) else "text" if isinstance(root, Text) else "nothing"
        message = f"{self.top} is expected at the top, found {found}"
        remedy = "write it below, indented, after '|'" if self.path else "is it the right file?"
        self._report("site.type", message, self.place(node.start_mark), remedy)
        return None

    def _report(self, code: str, message: str, mark: Mark | None = None, remedy: str = "") -> None:
        self.document.add(self.path, code, message, remedy, mark=mark)

    def _too_deep(self, text: str) -> bool:
        """Whether a line opens so many brackets that the parser would take minutes over it."""
        # Counted before the parser runs, as the parser itself is what takes too long.
        for line in _LINE.finditer(text):
            if line[0].count("[") + line[0].count("{") <= MAX_DEPTH:
                continue
            depth = 0
            for index, letter in enumerate(line[0], start=line.start()):
                depth += (letter in "[{") - (letter in "]}")
                if depth > MAX_DEPTH:
                    self._report("site.size", "is nested too deeply", self.at(index), "is it the right file?")
                    return True
        return False

    def _compose(self, text: str) -> Node | None:
        """Parses with the fast loader. The other loader parses and explains the errors of the fast one."""
        try:
            return compose(text, most=self._most)
        except TooManyError:
            self._report("site.size", f"holds more than a {self.document.of} can", remedy="is it the right file?")
            return None
        except (YAMLError, ValueError, OverflowError):
            return self._explained(text)

    @property
    def _most(self) -> int:
        """Users send jobs to a server. The files of a site are its administrator's."""
        return _MOST_IN_JOB if self.document.of == "job" else 0

    def _explained(self, text: str) -> Node | None:
        try:
            return compose(text, EXPLAINING, self._most)
        except ReaderError as error:
            mark = self.at(error.position)
            self._report("site.syntax", "holds a character that YAML does not allow", mark, "is it a text file?")
        except MarkedYAMLError as error:
            self._report_syntax(error, text)
        except (TooDeepError, RecursionError):
            self._report("site.syntax", "is nested too deeply")
        except UNGUARDED as error:
            self._report("site.syntax", f"is not YAML: {type(error).__name__}")
        return None

    def _report_syntax(self, error: MarkedYAMLError, text: str) -> None:
        found = explain(error, text)
        mark = self.place(found.mark) if found.mark else self.document.mark(self.path)
        remedy = found.remedy or _syntax_remedy(found.message, self.document, mark)
        self._report("site.syntax", f"is not YAML: {found.message}", mark, remedy)


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
    return ""
