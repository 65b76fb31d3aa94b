"""What the self-test needs to know of a scheduler. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pai_install.schedulers.self_test.model import Gang, Rank, Scenario
from pai_install.schedulers.self_test.objects import PRIORITIES, JsonObject, SelfTestContext

_Made = tuple[JsonObject, ...]


def _nothing(context: SelfTestContext) -> _Made:
    del context
    return ()


def _no_queues(context: SelfTestContext, scenario: Scenario) -> _Made:
    del context, scenario
    return ()


def _silent(objects: Sequence[Mapping[str, Any]]) -> str:
    del objects
    return ""


def _no_groups(labels: Iterable[Mapping[str, str]]) -> list[str]:
    del labels
    return []


@dataclass(frozen=True, slots=True)
class SelfTestDriver:
    """How a scheduler is asked. jobs: kinds of its jobs. words: the kind that says why jobs wait; empty: none does.

    kinds: what it has beside namespaces. namespaces: where its own controllers run. unsupported: check -> why the
    scheduler does not promise it. priorities: values of the test's priority classes. knows_devices: whether jobs may
    request devices that only the test knows. node_groups: labels of nodes -> names by which queues choose the nodes.
    """

    jobs: tuple[str, ...]
    gang: Callable[[SelfTestContext, Scenario, Gang], _Made]
    queues: Callable[[SelfTestContext, Scenario], _Made] = _no_queues
    shared: Callable[[SelfTestContext], _Made] = _nothing
    words: str = ""
    why: Callable[[Sequence[Mapping[str, Any]]], str] = _silent
    kinds: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    unsupported: Mapping[str, str] = field(default_factory=dict)
    priorities: Mapping[Rank, int] = field(default_factory=lambda: PRIORITIES)
    knows_devices: bool = True
    node_groups: Callable[[Iterable[Mapping[str, str]]], list[str]] = _no_groups
