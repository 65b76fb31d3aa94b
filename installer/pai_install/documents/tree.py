"""The parser's nodes -> Entries, Items and Text, with the place of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from yaml import MappingNode, Node, ScalarNode, SequenceNode
from yaml import Mark as YamlMark

from pai_install.documents.document import Document, Entries, Items, Mark, Overruled, Text
from pai_install.documents.problem import YamlPath

MAX_REPEATS = 20_000  # aliases of aliases multiply: a small file may mean more than fits in memory
MAX_REPEATED = 4 * 1024 * 1024  # characters of long texts that aliases repeat: written out, they fill the memory
MAX_MERGED = 100_000  # so do merges (<<) of merges: entries that are looked through
MAX_DEPTH = 60
MAX_TOLD = 1_000  # problems of one text. More cost seconds, and help no further
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_YAML_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(
    _YAML_TAG + name for name in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")
)
_VAULT_TAGS = frozenset({"!vault", "!vault-encrypted"})


class TooMuchError(Exception):
    """The content is larger or deeper than any real site."""

    def __init__(self, mark: Mark) -> None:
        super().__init__()
        self.mark = mark


Place = Callable[[YamlMark], Mark]


def own_place(mark: YamlMark) -> Mark:
    """The place of a parser's mark in the text that was parsed."""
    return Mark(mark.line + 1, mark.column + 1)


def _encodable(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text) if not text.isascii() else True


class TreeBuilder:
    """Converts parser nodes to Entries, Items, and Text, and records duplicates and tags.

    place: maps a mark of the parser to the document's file. last_wins: the last of duplicate keys wins. The others are
    recorded in the document's `overruled` without a problem.
    """

    def __init__(self, document: Document, place: Place = own_place, *, last_wins: bool = False) -> None:
        self.document = document
        self.place = place
        self.last_wins = last_wins
        self.seen: set[int] = set()
        self.repeats = 0
        self.repeated = 0
        self.merged = 0
        self.told: set[tuple[str, Mark]] = set()

    def build(self, node: Node, path: YamlPath = (), depth: int = 0) -> Entries | Items | Text | None:
        """Returns the container or text for a node and its children, or None for null.

        Raises TooMuchError for too deep nesting or too many repetitions by aliases.
        """
        # An alias yields the same node again. A few aliases of aliases can repeat a node billions of times.
        if id(node) in self.seen:
            self.repeats += 1
            self.repeated += len(node.value) if isinstance(node, ScalarNode) else 0
        self.seen.add(id(node))
        mark = self._mark(node)
        if self.repeats > MAX_REPEATS or self.repeated > MAX_REPEATED or depth > MAX_DEPTH:
            raise TooMuchError(mark)
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

    def _mark(self, node: Node) -> Mark:
        """Where a node begins."""
        return self.place(node.start_mark)

    def _report_once(self, path: YamlPath, code: str, message: str, remedy: str, mark: Mark) -> None:
        """Adds a problem. A mapping that is merged many times reports it once."""
        if (code, mark) not in self.told and len(self.told) < MAX_TOLD:
            self.told.add((code, mark))
            self.document.add(path, code, message, remedy, mark=mark)

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
        """Yields the entries of a mapping, merged ones (<<) last. Own entries win."""
        seen: dict[str, Mark] = {}
        merged: list[Node] = []
        for key, value in node.value:
            mark = self._mark(key)
            if not isinstance(key, ScalarNode) or not key.value or not _encodable(key.value):
                self._report_once(path, "site.key", "a key must be a word", "quote text with {{ }} or [ ]", mark)
            elif key.value == "<<" and not key.style:
                merged.append(value)
            elif key.value in seen and not self.last_wins:
                self._duplicate((*path, key.value), mark, seen[key.value])
            else:
                if key.value in seen:
                    self.document.overruled.append(Overruled((*path, key.value), seen[key.value], mark))
                seen[key.value] = mark
                yield key.value, mark, value
        for value in merged:
            for name, place, inner in self._merged(value, path, depth):
                self.repeated += len(name)
                # YAML's rule for <<: the mapping's own keys win over merged ones, whatever their order.
                if name not in seen:
                    seen[name] = place
                    yield name, place, inner

    def _merged(self, node: Node, path: YamlPath, depth: int) -> Iterator[tuple[str, Mark, Node]]:
        self.merged += 1 + len(node.value)
        if depth > MAX_DEPTH or self.merged > MAX_MERGED:
            raise TooMuchError(self._mark(node))
        if isinstance(node, MappingNode):
            yield from self._pairs(node, path, depth + 1)
        elif isinstance(node, SequenceNode):
            for item in node.value:
                yield from self._merged(item, path, depth + 1)
        else:
            message = "only a mapping can be merged with <<"
            self._report_once(path, "site.merge", message, "name one with an alias (*name)", self._mark(node))

    def _duplicate(self, path: YamlPath, mark: Mark, first: Mark) -> None:
        message = f"is given twice, first in line {first.line}"
        self._report_once(path, "site.duplicate-key", message, "remove one of the two", mark)
