"""What the self-test needs to know of each scheduler. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pai_install.schedulers.hived import self_test as hived
from pai_install.schedulers.kubernetes import self_test as default
from pai_install.schedulers.kueue import self_test as kueue
from pai_install.schedulers.self_test.model import Gang, Scenario
from pai_install.schedulers.self_test.objects import Cast, JsonObject, bare_pod, namespace, shared
from pai_install.schedulers.volcano import self_test as volcano
from pai_install.scheduling.model import Backend

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
class Stagehand:
    """How a scheduler is asked. jobs: kinds of its jobs. words: the kind that says why jobs wait; empty: none does.

    kinds: what it has beside namespaces. namespaces: where its own controllers run.
    """

    jobs: tuple[str, ...]
    queues: Callable[[Cast, Scenario], _Made]
    gang: Callable[[Cast, Scenario, Gang], _Made]
    shared: Callable[[Cast], _Made] = _nothing
    words: str = ""
    why: Callable[[Sequence[Mapping[str, Any]]], str] = _silent
    kinds: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()


STAGEHANDS: Mapping[Backend, Stagehand] = {
    "kueue": Stagehand(
        kueue.JOBS,
        kueue.queues,
        kueue.gang_objects,
        kueue.shared,
        kueue.WORDS,
        kueue.why,
        kueue.KINDS,
        kueue.CONTROLLERS,
    ),
    "volcano": Stagehand(
        volcano.JOBS,
        volcano.queues,
        volcano.gang_objects,
        words=volcano.WORDS,
        why=volcano.why,
        kinds=volcano.KINDS,
        namespaces=volcano.CONTROLLERS,
    ),
    "hived": Stagehand(hived.JOBS, _no_queues, hived.gang_objects, namespaces=hived.CONTROLLERS),
    "default": Stagehand(default.JOBS, default.queues, default.gang_objects),
}


def setting(cast: Cast) -> tuple[JsonObject, ...]:
    """What must be there before any queue: classes of priority, and what queues share."""
    return (*shared(cast), *STAGEHANDS[cast.backend].shared(cast))


def namespaces(cast: Cast, scenarios: Sequence[Scenario]) -> tuple[JsonObject, ...]:
    """One for each scenario."""
    return tuple(namespace(cast, one) for one in scenarios)


def queue_objects(cast: Cast, scenario: Scenario) -> tuple[JsonObject, ...]:
    """The queues of a scenario."""
    return STAGEHANDS[cast.backend].queues(cast, scenario)


def gang_objects(cast: Cast, scenario: Scenario, gang: Gang) -> tuple[JsonObject, ...]:
    """The job of a gang, or its bare pod."""
    if not gang.queued:
        return (bare_pod(cast, scenario, gang),)
    return STAGEHANDS[cast.backend].gang(cast, scenario, gang)
