"""Where everything in a YAML text begins and ends, to the character: edits need more than the places of a Document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ruamel.yaml import YAML
from ruamel.yaml.events import (
    AliasEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

_BETWEEN = re.compile(r"(?:[\s\ufeff]|(?<!\S)#[^\r\n]*)*")


class EditError(Exception):
    """The text cannot be edited safely. line: from 1. The place precedes the message."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True)
class Span:
    """A value from `start` to `end` of its own text, without later comments and blank lines.

    value: of a scalar. items and dashes: of a list. A dash is the position of an item's '-', -1 in brackets. keys,
    values, and colons: of a mapping, -1 for a key in braces without colon. inside: enclosed in brackets.
    """

    kind: Literal["scalar", "list", "mapping", "alias"]
    start: int
    end: int
    flow: bool = False
    value: str = ""
    items: tuple[Span, ...] = ()
    dashes: tuple[int, ...] = ()
    keys: tuple[Span, ...] = ()
    values: tuple[Span, ...] = ()
    colons: tuple[int, ...] = ()

    @property
    def absent(self) -> bool:
        """Whether nothing is written there at all."""
        return self.kind == "scalar" and self.start == self.end

    def number(self, key: str) -> int | None:
        """Which entry of a mapping is that of a key."""
        return next((number for number, one in enumerate(self.keys) if one.value == key), None)

    def scalars(self) -> Iterator[Span]:
        """All scalars in it but keys."""
        if self.kind == "scalar":
            yield self
        for inner in (*self.items, *self.values):
            yield from inner.scalars()


def read_spans(text: str) -> Span | None:
    """Returns the content of a valid YAML text, or None if it is empty. Raises EditError."""
    events = YAML(typ="safe", pure=True).parse(text)
    nodes = (event for event in events if isinstance(event, NodeEvent | MappingEndEvent | SequenceEndEvent))
    first = next(nodes, None)
    return None if first is None else _Reader(text, nodes).read(first)


def line_of(text: str, index: int) -> int:
    """The number of the line of a character, from 1."""
    return len(re.findall("\r\n|[\r\n]", text[:index])) + 1


class _Reader:
    def __init__(self, text: str, events: Iterator[Event]) -> None:
        self._text = text
        self._events = events

    def read(self, event: Event) -> Span:
        """The span that begins with an event."""
        start, end = event.start_mark.index, event.end_mark.index
        match event:
            case ScalarEvent():
                return Span("scalar", start, self._scalar_end(event, start, end), value=event.value)
            case AliasEvent():
                return Span("alias", start, end)
            case SequenceStartEvent(flow_style=flow):
                return self._list(start, flow=bool(flow))
            case MappingStartEvent(flow_style=flow):
                return self._mapping(start, flow=bool(flow))
            case _:
                raise self._refused("is not understood", start)

    def _scalar_end(self, event: ScalarEvent, start: int, end: int) -> int:
        """Blank lines after a block of text belong to it only where its head says so (+)."""
        if event.style not in ("|", ">"):
            return end
        block = self._text[start:end]
        kept = "+" in block.splitlines()[0].partition("#")[0]
        return end if kept else start + len(block.rstrip())

    def _list(self, start: int, *, flow: bool) -> Span:
        items: list[Span] = []
        dashes: list[int] = []
        event = next(self._events)
        place = start
        while not isinstance(event, SequenceEndEvent):
            dash = -1 if flow else self._mark_after(place, "-")
            found = self._place(self.read(event), dash + 1 if dash >= 0 else None)
            items.append(found)
            dashes.append(dash)
            place = found.end
            event = next(self._events)
        end = event.end_mark.index if flow else place
        return Span("list", start, end, flow, items=tuple(items), dashes=tuple(dashes))

    def _mapping(self, start: int, *, flow: bool) -> Span:
        keys: list[Span] = []
        values: list[Span] = []
        colons: list[int] = []
        event = next(self._events)
        while not isinstance(event, MappingEndEvent):
            key = self.read(event)
            value = self.read(next(self._events))
            colon = self._mark_after(key.end, ":", needed=not flow)
            keys.append(key)
            colons.append(colon)
            values.append(self._place(value, colon + 1 if colon >= 0 else key.end))
            event = next(self._events)
        end = event.end_mark.index if flow else values[-1].end
        return Span("mapping", start, end, flow, keys=tuple(keys), values=tuple(values), colons=tuple(colons))

    @staticmethod
    def _place(value: Span, after: int | None) -> Span:
        """Returns the place of an unwritten value, because the parser places it at the next token."""
        return value if after is None or not value.absent else Span("scalar", after, after)

    def _mark_after(self, index: int, mark: str, *, needed: bool = True) -> int:
        """Where the mark is that is the next thing from a place on."""
        found = _BETWEEN.match(self._text, index)
        place = found.end() if found is not None else index
        if self._text[place : place + 1] == mark:
            return place
        if needed:
            raise self._refused("is written in a way that no command edits", index)
        return -1

    def _refused(self, message: str, index: int) -> EditError:
        return EditError(message, line_of(self._text, index))
