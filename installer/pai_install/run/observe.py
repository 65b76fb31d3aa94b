"""Observes the machines: one read-only task on each, before anything is planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pai_install.engine.base import Event, RunRequest
from pai_install.plan.model import HostStep, Inventory, Playbook, Step
from pai_install.report.model import OBSERVE, PhaseResult
from pai_install.report.notices import PhaseFinished, PhaseStarted
from pai_install.run.actions import Stage, run_playbook
from pai_install.system.plain import one_line


@dataclass(frozen=True, slots=True)
class ObserveResult:
    """The observation. results: host -> result of the fact module. Hosts without one are in `missed`.

    missed: host -> cause.
    """

    phase: PhaseResult
    results: Mapping[str, Mapping[str, Any]]

    @property
    def missed(self) -> dict[str, str]:
        """The hosts that could not be observed, and why."""
        return {
            host: one_line(result.failure.message) if result.failure else "the machine returned no facts"
            for host, result in self.phase.hosts.items()
            if host not in self.results
        }


def observe(inventory: Inventory, hosts: Sequence[str], stage: Stage) -> ObserveResult:
    """Runs observe.yml on the hosts.

    Raises PaiError when Ansible cannot run it at all, KeyboardInterrupt on Ctrl-C.
    """
    results: dict[str, Mapping[str, Any]] = {}

    def keep(event: Event) -> None:
        if event.host and "ansible_facts" in event.result:
            results[event.host] = event.result

    steps = tuple(HostStep(host, ()) for host in hosts)
    step = Step(OBSERVE, "Observe the machines", steps, Playbook("observe.yml"))
    stage.notify(PhaseStarted(step.name, step.title, tuple(hosts), 1, 1))
    end = run_playbook(step, RunRequest("observe.yml", inventory, limit=tuple(hosts)), replace(stage, keep=keep))
    stage.notify(PhaseFinished(end.result))
    if end.interrupted:
        raise KeyboardInterrupt
    if end.problem is not None:
        raise end.problem
    return ObserveResult(end.result, results)
