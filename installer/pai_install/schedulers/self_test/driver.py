"""What the self-test needs to know of a scheduler. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pai_install.schedulers.self_test.model import Gang, Scenario
from pai_install.schedulers.self_test.objects import Cast, JsonObject

_Made = tuple[JsonObject, ...]


def _nothing(cast: Cast) -> _Made:
    del cast
    return ()


def _no_queues(cast: Cast, scenario: Scenario) -> _Made:
    del cast, scenario
    return ()


def _silent(objects: Sequence[Mapping[str, Any]]) -> str:
    del objects
    return ""


@dataclass(frozen=True, slots=True)
class SelfTestDriver:
    """How a scheduler is asked. jobs: kinds of its jobs. words: the kind that says why jobs wait; empty: none does.

    kinds: what it has beside namespaces. namespaces: where its own controllers run.
    """

    jobs: tuple[str, ...]
    gang: Callable[[Cast, Scenario, Gang], _Made]
    queues: Callable[[Cast, Scenario], _Made] = _no_queues
    shared: Callable[[Cast], _Made] = _nothing
    words: str = ""
    why: Callable[[Sequence[Mapping[str, Any]]], str] = _silent
    kinds: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
