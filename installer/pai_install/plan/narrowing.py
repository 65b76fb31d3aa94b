"""--limit: the steps of the named machines, and their dependencies on others. Pure."""

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
    """Returns the steps with the hosts in `limit` and the hosts that they depend on.

    A step needs others. If a machine does not take part in a needed step, such as the component store for a worker, the
    step is needed on its own machines. A ready step stays unchanged there, whatever its plan. Otherwise the plan
    includes it and the earlier steps of that machine.

    applies(step, host): the host takes part in the step. ready(step, host): the result of the step there is usable.
    gives(step, host): other hosts of the step read changed settings from there. All take the step's name.
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
