"""Metadata of a site file's field besides its type: the effect of a change, and whether it has an effect yet.

Written into the annotation: `pod_cidr: Annotated[Cidr, fixed("...")] = "10.200.0.0/13"`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic.fields import FieldInfo

Marker = TypeVar("Marker")


class ChangeClass(StrEnum):
    """The effect of a changed value on a running cluster."""

    LIVE = "live"
    RESTARTS = "restarts"
    NEW_MACHINES = "new-machines"
    FIXED = "fixed"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Change:
    """The class of a setting. units: the systemd units that restart. note: exceptions, or an alternative."""

    kind: ChangeClass
    units: tuple[str, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        words = {
            ChangeClass.LIVE: "applies live",
            ChangeClass.RESTARTS: f"restarts {', '.join(unit.removesuffix('.service') for unit in self.units)}",
            ChangeClass.NEW_MACHINES: "new machines only",
            ChangeClass.FIXED: "cannot change on a running cluster",
            ChangeClass.NOTHING: "changes nothing",
        }[self.kind]
        return f"{words}: {self.note}" if self.note else words


def live(note: str = "") -> Change:
    """Applies without a restart of anything."""
    return Change(ChangeClass.LIVE, note=note)


def restarts(*units: str, note: str = "") -> Change:
    """Restarts these systemd units where it applies."""
    return Change(ChangeClass.RESTARTS, units, note)


def new_machines(note: str = "") -> Change:
    """Returns the change class of a setting for future machines only."""
    return Change(ChangeClass.NEW_MACHINES, note=note)


def fixed(instead: str) -> Change:
    """Cannot change on a running cluster. instead: the remedy."""
    return Change(ChangeClass.FIXED, note=instead)


@dataclass(frozen=True, slots=True)
class WithoutEffect:
    """Accepted because OpenPAI knew it, and changes nothing. why: a clause without full stop."""

    why: str


@dataclass(frozen=True, slots=True)
class NotYet:
    """A value that is read and checked, but has no effect in this version.

    sentence: message if the user requests it. when: whether the values of the model request it. Without it, any written
    value does. Fields with the same NotYet report it once.
    """

    sentence: str
    when: Callable[[Any], bool] | None = None


@cache
def keys_of(model: type[BaseModel]) -> frozenset[str]:
    """The keys of a model's fields, as the file writes them."""
    return frozenset(info.alias or name for name, info in model.model_fields.items())


def marker_of(info: FieldInfo, kind: type[Marker]) -> Marker | None:
    """The marker of this kind in a field's annotation."""
    return next((item for item in info.metadata if isinstance(item, kind)), None)


def _marked(model: type[BaseModel], kind: type[Marker]) -> Iterator[tuple[str, Marker]]:
    for name, info in model.model_fields.items():
        marker = marker_of(info, kind)
        if marker is not None:
            yield info.alias or name, marker


def without_effect(model: type[BaseModel]) -> dict[str, str]:
    """The keys of a file that are accepted without effect -> why."""
    return {key: marker.why for key, marker in _marked(model, WithoutEffect)}


def changes(model: type[BaseModel]) -> dict[str, Change]:
    """Returns key -> change class of a model. Keys without effect, or without effect yet, change nothing."""
    declared = dict(_marked(model, Change))
    keys = [info.alias or name for name, info in model.model_fields.items()]
    return {key: declared.get(key, Change(ChangeClass.NOTHING)) for key in keys}


def not_yet(values: BaseModel) -> Iterator[str]:
    """Yields the sentences about requested features that this version does not set up, without duplicates."""
    found: dict[NotYet, None] = {}
    for name, info in type(values).model_fields.items():
        marker = marker_of(info, NotYet)
        if marker is not None and _is_requested(values, name, marker):
            found[marker] = None
    yield from dict.fromkeys(marker.sentence for marker in found)


def _is_requested(values: BaseModel, name: str, marker: NotYet) -> bool:
    if marker.when is not None:
        return marker.when(values)
    return name in values.model_fields_set and getattr(values, name) is not None
