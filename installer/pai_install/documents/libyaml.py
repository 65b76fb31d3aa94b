"""Large files through libyaml, ten times as fast as the parser that explains what is wrong.

libyaml decides nothing: what it refuses, and what goes beyond plain YAML, is left to the other parser.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import yaml
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.tag import Tag

_TAG = "tag:yaml.org,2002:"
_MAX_DEPTH = 200


class _Unusual(Exception):  # noqa: N818 - no error
    """Something that the other parser has to judge."""


def compose(text: str) -> Node | None:
    """The document's node, its marks those of the text; None where the other parser has to look at it."""
    loader = getattr(yaml, "CSafeLoader", None)
    if loader is None:
        return None
    try:
        return _Composer().compose(yaml.parse(text, Loader=loader))
    except (yaml.YAMLError, _Unusual, UnicodeError, ValueError):
        return None


class _Composer:
    """Events -> nodes, without recursion."""

    def __init__(self) -> None:
        self.roots: list[Node] = []
        self.open: list[tuple[Node, list[Node]]] = []
        self.anchors: dict[str, Node] = {}

    def compose(self, events: Iterator[yaml.Event]) -> Node | None:
        for event in events:
            self._take(event)
        return self.roots[0] if len(self.roots) == 1 else None

    def _take(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                style = event.style or None
                self._add(event, ScalarNode(_tag(event, "str"), event.value, event.start_mark, event.end_mark, style))
            case yaml.SequenceStartEvent():
                self._begin(event, SequenceNode(_tag(event, "seq"), [], event.start_mark, event.end_mark))
            case yaml.MappingStartEvent():
                self._begin(event, MappingNode(_tag(event, "map"), [], event.start_mark, event.end_mark))
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._end()
            case yaml.AliasEvent():
                if event.anchor not in self.anchors:
                    raise _Unusual
                self._append(self.anchors[event.anchor])
            case yaml.DocumentStartEvent():
                if event.version or event.tags:
                    raise _Unusual

    def _add(self, event: yaml.NodeEvent, node: Node) -> None:
        if event.anchor:
            self.anchors[event.anchor] = node
        self._append(node)

    def _append(self, node: Node) -> None:
        (self.open[-1][1] if self.open else self.roots).append(node)

    def _begin(self, event: yaml.NodeEvent, node: Node) -> None:
        self._add(event, node)
        self.open.append((node, []))
        if len(self.open) > _MAX_DEPTH:
            raise _Unusual

    def _end(self) -> None:
        node, inner = self.open.pop()
        if isinstance(node, MappingNode):
            node.value.extend(zip(inner[::2], inner[1::2], strict=True))
        else:
            node.value.extend(inner)


def _tag(event: yaml.NodeEvent, kind: str) -> Tag:
    tag = getattr(event, "tag", None)
    return _made(_TAG + kind if tag in (None, "!") else str(tag))


@cache
def _made(tag: str) -> Tag:
    """One for all nodes: making one takes longer than making the node."""
    return Tag(suffix=tag)
