"""The objects of a run of the self-test. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pai_install.schedulers.registry import backend_of
from pai_install.schedulers.self_test.model import Gang, Scenario
from pai_install.schedulers.self_test.objects import JsonObject, SelfTestContext, bare_pod, namespace, shared
from pai_install.schedulers.self_test.scenarios import Bounds, on_devices
from pai_install.scheduling.model import Backend


def scenarios(backend: Backend, bounds: Bounds) -> tuple[Scenario, ...]:
    """Those that a scheduler promises to pass on devices of the test; none where it knows only its own cells."""
    driver = backend_of(backend).self_test
    return on_devices(driver.unsupported, bounds) if driver.knows_devices else ()


def setting(context: SelfTestContext) -> tuple[JsonObject, ...]:
    """What must be there before any queue: classes of priority, and what queues share."""
    driver = backend_of(context.backend).self_test
    return (*shared(context, driver.priorities), *driver.shared(context))


def namespaces(context: SelfTestContext, scenarios: Sequence[Scenario]) -> tuple[JsonObject, ...]:
    """One for each scenario."""
    return tuple(namespace(context, one) for one in scenarios)


def queue_objects(context: SelfTestContext, scenario: Scenario) -> tuple[JsonObject, ...]:
    """The queues of a scenario."""
    return backend_of(context.backend).self_test.queues(context, scenario)


def gang_objects(context: SelfTestContext, scenario: Scenario, gang: Gang) -> tuple[JsonObject, ...]:
    """The job of a gang, or its bare pod."""
    if not gang.queued:
        return (bare_pod(context, scenario, gang),)
    return backend_of(context.backend).self_test.gang(context, scenario, gang)
