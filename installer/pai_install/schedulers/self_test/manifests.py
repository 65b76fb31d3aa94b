"""The objects of a run of the self-test. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pai_install.schedulers.registry import backend_of
from pai_install.schedulers.self_test.model import Gang, Scenario
from pai_install.schedulers.self_test.objects import Cast, JsonObject, bare_pod, namespace, shared


def setting(cast: Cast) -> tuple[JsonObject, ...]:
    """What must be there before any queue: classes of priority, and what queues share."""
    return (*shared(cast), *backend_of(cast.backend).self_test.shared(cast))


def namespaces(cast: Cast, scenarios: Sequence[Scenario]) -> tuple[JsonObject, ...]:
    """One for each scenario."""
    return tuple(namespace(cast, one) for one in scenarios)


def queue_objects(cast: Cast, scenario: Scenario) -> tuple[JsonObject, ...]:
    """The queues of a scenario."""
    return backend_of(cast.backend).self_test.queues(cast, scenario)


def gang_objects(cast: Cast, scenario: Scenario, gang: Gang) -> tuple[JsonObject, ...]:
    """The job of a gang, or its bare pod."""
    if not gang.queued:
        return (bare_pod(cast, scenario, gang),)
    return backend_of(cast.backend).self_test.gang(cast, scenario, gang)
