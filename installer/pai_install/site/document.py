"""One YAML file -> plain containers whose every scalar is text that knows where it stands.

Scalars stay text on purpose: only the field that reads one knows what it should be, so `1.36`, `010`, `yes`
and `"true"` reach it as written. A file that cannot be read gives problems, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from pai_install.site.problem import Problem, Severity, YamlPath, dotted, printable

MAX_BYTES = 4 * 1024 * 1024
MAX_REPEATS = 20_000  # aliases of aliases multiply: a small file may mean more than fits in memory
MAX_DEPTH = 60
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_YAML_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(
    _YAML_TAG + name for name in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")
)
_VAULT_TAGS = frozenset({"!vault", "!vault-encrypted"})


class Mark(NamedTuple):
    """A place in a file, counted from 1."""

    line: int
    column: int


class Text(str):
    """A scalar as it was written. plain: without quotes. vault: an ansible-vault string."""

    __slots__ = ("mark", "path", "plain", "vault")
    mark: Mark
    path: YamlPath
    plain: bool
    vault: bool


class Entries(dict[str, Any]):
    """A mapping that knows where it stands."""

    mark: Mark
    path: YamlPath


class Items(list[Any]):
    """A list that knows where it stands."""

    mark: Mark
    path: YamlPath


@dataclass
class Document:
    """A file's content and the place of everything in it.

    file, folder: as named in problems; where relative paths in the file start.
    root: Entries, or None when there is nothing to read (then `problems` may say why).
    marks: path -> the place of the key, or of the item in a list.
    """

    file: str
    folder: Path = Path()
    root: Entries | None = field(default=None, repr=False)  # may hold secrets
    lines: tuple[str, ...] = field(default=(), repr=False)
    marks: dict[YamlPath, Mark] = field(default_factory=dict, repr=False)
    problems: list[Problem] = field(default_factory=list)

    @property
    def content(self) -> Entries:
        """The root, or an empty mapping when there is none."""
        return Entries() if self.root is None else self.root

    def mark(self, path: YamlPath) -> Mark:
        """The place of `path`, or of its nearest parent that exists."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.marks:
                return self.marks[path[:length]]
        return Mark(1, 1)

    def add(
        self,
        path: YamlPath,
        code: str,
        message: str,
        remedy: str = "",
        *,
        severity: Severity = "error",
        mark: Mark | None = None,
    ) -> None:
        """Notes a problem at `path`, placed at `mark` where that is more exact."""
        line, column = mark or self.mark(path)
        self.problems.append(
            Problem(self.file, line, column, dotted(path), severity, code, printable(message), printable(remedy))
        )


def read_document(path: Path, *, top: str = "a mapping") -> Document:
    """Reads a YAML file. `top` says in words what the file holds, for messages.

    A file that does not exist, is no regular file, is too large, is not UTF-8 or is not YAML leaves
    `root` None and a problem behind.
    """
    document = Document(printable(str(path)), path.parent)
    text = _read_text(path, document)
    if text is not None:
        parse_document(text, document, top=top)
    return document


def _read_text(path: Path, document: Document) -> str | None:
    try:
        if not path.is_file():
            what = "is not a file" if path.exists() else "does not exist"
            document.add((), "site.no-file", what, _missing_remedy(path))
            return None
        if path.stat().st_size > MAX_BYTES:
            document.add(
                (), "site.file-size", f"is larger than {MAX_BYTES // 1024 // 1024} MiB", "is it the right file?"
            )
            return None
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        document.add((), "site.no-file", f"cannot be read: {reason}")
        return None
    return _decode(data, document)


def _missing_remedy(path: Path) -> str:
    """Names what may be there instead: another spelling, or a site of OpenPAI v1.0 to v1.4."""
    other = path.with_suffix(".yml")
    if other.is_file():
        return f"rename {other.name} to {path.name}"
    if (path.parent / "master.csv").is_file() or (path.parent / "worker.csv").is_file():
        return "this is a site of OpenPAI v1.0 to v1.4: pai-install migrate OLD --site NEW turns it into a current one"
    return "pai-install init writes a commented start; --site names another folder"


def _decode(data: bytes, document: Document) -> str | None:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        document.lines = split_lines(data.decode(errors="replace"))
        before = split_lines(data[: error.start].decode(errors="replace"))
        mark = Mark(len(before), len(before[-1]) + 1)
        document.add(
            (),
            "site.encoding",
            f"is not UTF-8 text (byte 0x{data[error.start]:02x})",
            "save it as UTF-8",
            mark=mark,
        )
        return None


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
        root = _Builder(document).build(node, (), 0)
    except _TooMuchError as error:
        remedy = "is an alias (*name) inside the thing it names?"
        document.add((), "site.size", "holds more than a site can", remedy, mark=error.mark)
        return
    if isinstance(root, Entries):
        document.root = root
        return
    found = "a list" if isinstance(root, Items) else "text" if isinstance(root, Text) else "nothing"
    document.add(
        (), "site.type", f"{top} is expected at the top, found {found}", "is it the right file?", mark=_mark(node)
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


class _TooMuchError(Exception):
    """The content is larger or deeper than any real site."""

    def __init__(self, mark: Mark) -> None:
        super().__init__()
        self.mark = mark


def _mark(node: Node) -> Mark:
    return Mark(node.start_mark.line + 1, node.start_mark.column + 1)


def _encodable(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text) if not text.isascii() else True


class _Builder:
    """Turns parser nodes into Entries, Items and Text; notes duplicates and tags as it goes."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.seen: set[int] = set()
        self.repeats = 0

    def build(self, node: Node, path: YamlPath, depth: int) -> Entries | Items | Text | None:
        self.repeats += id(node) in self.seen
        self.seen.add(id(node))
        mark = _mark(node)
        if self.repeats > MAX_REPEATS or depth > MAX_DEPTH:
            raise _TooMuchError(mark)
        self.document.marks.setdefault(path, mark)
        if isinstance(node, ScalarNode):
            return self._scalar(node, path, mark)
        self._check_tag(node, path, mark)
        if isinstance(node, SequenceNode):
            items = Items(self.build(item, (*path, index), depth + 1) for index, item in enumerate(node.value))
            items.mark, items.path = mark, path
            return items
        assert isinstance(node, MappingNode)  # noqa: S101 - the parser has three kinds of node
        entries = Entries()
        entries.mark, entries.path = mark, path
        for name, place, value in self._pairs(node, path, depth):
            self.document.marks[(*path, name)] = place
            entries[name] = self.build(value, (*path, name), depth + 1)
        return entries

    def _scalar(self, node: ScalarNode, path: YamlPath, mark: Mark) -> Text | None:
        tag = str(node.tag)
        vault = tag in _VAULT_TAGS
        if not vault:
            self._check_tag(node, path, mark)
        plain = not node.style
        if plain and not vault and node.value in _NULLS:
            return None
        if not _encodable(node.value):
            self.document.add(path, "site.characters", "holds half a character (a surrogate)", mark=mark)
            return None
        text = Text(node.value)
        text.mark, text.path, text.plain, text.vault = mark, path, plain, vault
        return text

    def _check_tag(self, node: Node, path: YamlPath, mark: Mark) -> None:
        tag = str(node.tag)
        if tag in _PLAIN_TAGS or tag in (_YAML_TAG + "map", _YAML_TAG + "seq"):
            return
        shown = tag.replace(_YAML_TAG, "!!")
        self.document.add(path, "site.tag", f"the tag {shown} is not understood", "remove it", mark=mark)

    def _pairs(self, node: MappingNode, path: YamlPath, depth: int) -> Iterator[tuple[str, Mark, Node]]:
        """The entries of a mapping, merged ones (<<) last; own ones win, the first of a duplicate wins."""
        seen: dict[str, Mark] = {}
        merged: list[Node] = []
        for key, value in node.value:
            mark = _mark(key)
            if not isinstance(key, ScalarNode) or not key.value or not _encodable(key.value):
                self.document.add(path, "site.key", "a key must be a word", "quote text with {{ }} or [ ]", mark=mark)
            elif key.value == "<<" and not key.style:
                merged.append(value)
            elif key.value in seen:
                self._duplicate((*path, key.value), mark, seen[key.value])
            else:
                seen[key.value] = mark
                yield key.value, mark, value
        for value in merged:
            for name, place, inner in self._merged(value, path, depth):
                if name not in seen:
                    seen[name] = place
                    yield name, place, inner

    def _merged(self, node: Node, path: YamlPath, depth: int) -> Iterator[tuple[str, Mark, Node]]:
        if depth > MAX_DEPTH:
            raise _TooMuchError(_mark(node))
        if isinstance(node, MappingNode):
            yield from self._pairs(node, path, depth + 1)
        elif isinstance(node, SequenceNode):
            for item in node.value:
                yield from self._merged(item, path, depth + 1)
        else:
            message = "only a mapping can be merged with <<"
            self.document.add(path, "site.merge", message, "name one with an alias (*name)", mark=_mark(node))

    def _duplicate(self, path: YamlPath, mark: Mark, first: Mark) -> None:
        message = f"is given twice, first in line {first.line}"
        self.document.add(path, "site.duplicate-key", message, "remove one of the two", mark=mark)
