"""--limit: the steps of the named machines, and what these need on others. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from pai_install.plan.model import HostStep, Step
from pai_install.system.words import shortened

Question = Callable[[str, str], bool]
_SHOWN = 3


def narrowed(
    steps: Sequence[Step], limit: Collection[str], *, applies: Question, ready: Question, gives: Question
) -> tuple[Step, ...]:
    """The steps with the hosts in `limit`, and with the hosts that these depend on.

    A step needs others. One that a machine does not go through itself, such as the component store for a worker, is
    needed on the machines that do. What is ready there is left alone, whatever else is planned for it; what is not
    comes into the plan, and so do the steps before it on that machine.

    applies(step, host): whether the host goes through the step. ready(step, host): whether what the step makes there
    can be used as it is. gives(step, host): whether others that go through the step take changed settings from there.
    All take the step's name.
    """
    order = {step.name: number for number, step in enumerate(steps)}
    planned = {step.name: dict.fromkeys(step.names) for step in steps}
    origins: dict[tuple[str, str], dict[str, None]] = {}
    queue = deque((step, host, host) for step in steps for host in step.names if host in limit)
    while queue:
        step, host, origin = queue.popleft()
        for need, other in _elsewhere(step, host, planned, limit, applies, gives):
            for earlier in steps[: order[need] + 1]:
                if other in planned[earlier.name] and not ready(earlier.name, other):
                    known = origins.setdefault((earlier.name, other), {})
                    if origin not in known:
                        known[origin] = None
                        queue.append((earlier, other, origin))
    kept = (replace(step, hosts=tuple(_kept(step, limit, origins))) for step in steps)
    return tuple(step for step in kept if step.hosts)


def _elsewhere(
    step: Step,
    host: str,
    planned: dict[str, dict[str, None]],
    limit: Collection[str],
    applies: Question,
    gives: Question,
) -> Iterator[tuple[str, str]]:
    """The steps that are needed and that `host` does not go through, with the machines that have work there.

    And the step itself, on machines that give settings to it.
    """
    yield from ((step.name, other) for other in planned[step.name] if other not in limit and gives(step.name, other))
    for need in step.needs:
        if need in planned and not applies(need, host):
            yield from ((need, other) for other in planned[need] if other not in limit)


def _kept(step: Step, limit: Collection[str], origins: dict[tuple[str, str], dict[str, None]]) -> Iterator[HostStep]:
    for host in step.hosts:
        if host.host in limit:
            yield host
        elif (step.name, host.host) in origins:
            yield replace(
                host, reasons=(f"needed by {shortened(origins[step.name, host.host], _SHOWN)}", *host.reasons)
            )
