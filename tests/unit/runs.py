"""Plans and engines for tests of everything above the engine; no Ansible."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pai_install.engine.base import Engine, Event, EventKind, RunRequest
from pai_install.errors import PaiError
from pai_install.plan.model import HostStep, Inventory, Plan, Playbook, Step
from pai_install.report.model import Outcome
from pai_install.report.notices import Notice, Observer
from pai_install.run.executor import Means, execute

SECRET = "hunter22-planted"
HOSTS = ("master", "one", "two")

Script = Mapping[str, Sequence[Event] | BaseException]


def phase(name: str, *hosts: str, needs: tuple[str, ...] = ()) -> Step:
    """A phase with one reason per host."""
    steps = tuple(HostStep(host, ("never installed",)) for host in hosts)
    return Step(name, name.capitalize(), steps, Playbook(f"{name}.yml"), needs)


def plan_of(*phases: Step, unreachable: Mapping[str, str] | None = None) -> Plan:
    """A plan on one control plane and two workers, with a secret in the inventory."""
    inventory = Inventory(
        groups={"control_plane": ("master",), "workers": ("one", "two")},
        shared_vars={"ansible_become_password": SECRET},
        host_vars={host: {} for host in HOSTS},
    )
    return Plan(phases, inventory, dict(unreachable or {}))


def event(kind: str, host: str, task: str = "task", **result: Any) -> Event:
    """An event of kind ok, changed, failed..."""
    return Event(EventKind(kind), task, f"/roles/x.yml:{len(task)}", host, 1.5, result)


def done(*events: Event, failures: Iterable[str] = (), dark: Iterable[str] = (), rc: int = 0) -> list[Event]:
    """The events and Ansible's own count."""
    stats = {"failures": dict.fromkeys(failures, 1), "dark": dict.fromkeys(dark, 1), "rescued": {}}
    return [*events, Event(EventKind.DONE, result=stats, returncode=rc)]


@dataclass
class ScriptedEngine:
    """Plays a list of events per playbook; an exception in the script is raised at its place.

    Hosts outside the limit are left out. closed: playbooks whose stream was closed, by its end or early.
    """

    script: Mapping[str, Sequence[Event | BaseException]]
    requests: list[RunRequest] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)

    def run(self, request: RunRequest) -> Generator[Event]:
        """Plays the playbook's events."""
        self.requests.append(request)
        try:
            for step in self.script.get(request.playbook, [PaiError(f"no script for {request.playbook}")]):
                if isinstance(step, BaseException):
                    raise step
                if not step.host or step.host in request.limit:
                    yield step
        finally:
            self.closed.append(request.playbook)


def run_of(plan: Plan, engine: Engine, observers: Sequence[Observer], **words: Any) -> Outcome:
    """Executes a plan that needs nothing but an engine."""
    return execute(plan, Means(engine), observers, **words)


@dataclass
class Listener:
    """Keeps every notice."""

    notices: list[Notice] = field(default_factory=list)

    def notice(self, notice: Notice) -> None:
        """Keeps it."""
        self.notices.append(notice)

    def of(self, kind: type[Notice]) -> list[Any]:
        """Those of one type."""
        return [notice for notice in self.notices if isinstance(notice, kind)]


@dataclass(frozen=True)
class Kit:
    """What the tests build runs from."""

    phase: Callable[..., Step] = phase
    plan: Callable[..., Plan] = plan_of
    event: Callable[..., Event] = event
    done: Callable[..., list[Event]] = done
    engine: Callable[..., ScriptedEngine] = ScriptedEngine
    run: Callable[..., Outcome] = run_of
    listener: Callable[[], Listener] = Listener
    secret: str = SECRET

    def fine(self, *hosts: str) -> list[Event]:
        """One changed and one ok task on each host."""
        return done(*(event(kind, host, kind) for kind in ("changed", "ok") for host in hosts))
