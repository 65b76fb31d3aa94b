"""YAML text -> nodes with marks, by PyYAML's events: in C where libyaml is there, and of limited depth. Pure."""

from __future__ import annotations

from typing import Any

import yaml

from pai_install.system.yaml import FAST

# the loader in Python, which explains better what is wrong
EXPLAINING: Any = yaml.SafeLoader
# The parser has a few unguarded corners. Whatever it raises there is the fault of the file.
UNGUARDED = (
    yaml.YAMLError,
    ValueError,
    ArithmeticError,
    LookupError,
    AttributeError,
    TypeError,
    AssertionError,
)
MAX_DEPTH = 200
_TAG = "tag:yaml.org,2002:"


class TooDeepError(yaml.YAMLError):
    """More nested than any real file."""


class TooManyError(Exception):
    """More nodes than any real file has."""


def compose(text: str, loader: Any = FAST, most: int = 0) -> yaml.Node | None:  # noqa: ANN401 - a class of PyYAML's
    """Returns the node of the only document of a text, or None for an empty text. Raises yaml.YAMLError.

    most: events, 0 for any number. Raises TooManyError for more.
    """
    composer = _Composer()
    for count, event in enumerate(yaml.parse(text, Loader=loader)):
        if 0 < most < count:
            raise TooManyError
        composer.take(event)
    return composer.roots[0] if composer.roots else None


class _Composer:
    """Events -> nodes, without recursion."""

    def __init__(self) -> None:
        self.roots: list[yaml.Node] = []
        self.open: list[tuple[yaml.CollectionNode, list[yaml.Node]]] = []
        self.anchors: dict[str, yaml.Node] = {}

    def take(self, event: yaml.Event) -> None:
        begin: Any = event.start_mark  # of either loader
        end: Any = event.end_mark
        match event:
            case yaml.ScalarEvent():
                # For plain text the loader in C says "", and the one in Python None.
                style = event.style or None
                node = yaml.ScalarNode(_tag(event, "str"), event.value, begin, end, style)
                self._add(event, node)
            case yaml.SequenceStartEvent():
                self._begin(event, yaml.SequenceNode(_tag(event, "seq"), [], begin, end))
            case yaml.MappingStartEvent():
                self._begin(event, yaml.MappingNode(_tag(event, "map"), [], begin, end))
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._end()
            case yaml.AliasEvent():
                if event.anchor not in self.anchors:
                    problem = f"found undefined alias {event.anchor!r}"
                    raise yaml.composer.ComposerError(None, None, problem, begin)
                self._append(self.anchors[event.anchor])
            case yaml.DocumentStartEvent() if self.roots:
                first: Any = self.roots[0].start_mark
                context, problem = "expected a single document in the stream", "but found another document"
                raise yaml.composer.ComposerError(context, first, problem, begin)

    def _add(self, event: yaml.NodeEvent, node: yaml.Node) -> None:
        if event.anchor:
            self.anchors[event.anchor] = node
        self._append(node)

    def _append(self, node: yaml.Node) -> None:
        (self.open[-1][1] if self.open else self.roots).append(node)

    def _begin(self, event: yaml.NodeEvent, node: yaml.CollectionNode) -> None:
        self._add(event, node)
        self.open.append((node, []))
        if len(self.open) > MAX_DEPTH:
            raise TooDeepError

    def _end(self) -> None:
        node, inner = self.open.pop()
        if isinstance(node, yaml.MappingNode):
            node.value.extend(zip(inner[::2], inner[1::2], strict=True))
        else:
            node.value.extend(inner)


def _tag(event: yaml.NodeEvent, kind: str) -> str:
    tag = getattr(event, "tag", None)
    return _TAG + kind if tag in (None, "!") else str(tag)
