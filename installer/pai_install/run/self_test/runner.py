"""Plays scenarios at the same time, each in a namespace, with queues and devices of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pai_install.cluster.client import ApiError, ClusterClient, Select
from pai_install.errors import PaiError
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject
from pai_install.run.self_test.cleanup import clean, gone, ref_of, start_controllers, stop_controllers
from pai_install.run.self_test.devices import given
from pai_install.run.self_test.observe import last_warning, samples
from pai_install.schedulers.registry import backend_of
from pai_install.schedulers.self_test.driver import SelfTestDriver
from pai_install.schedulers.self_test.manifests import gang_objects, namespaces, queue_objects, setting
from pai_install.schedulers.self_test.model import OURS, RUN, Gang, Sample, Scenario, ScenarioStep
from pai_install.schedulers.self_test.objects import SelfTestContext
from pai_install.schedulers.self_test.scenario_run import ScenarioRun, begun, explained, refused, seen
from pai_install.system.words import plural

POLL_S = 0.5
# looks that may fail in a row before the test gives up
_BLIND = 10
# a webhook that was just started refuses its first requests
_ATTEMPTS = 3


@dataclass
class SelfTestRunner:
    """Runs scenarios. clock: returns seconds. pause: waits for seconds. waits: until its objects are deleted."""

    cluster: ClusterClient
    context: SelfTestContext
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    waits: bool = True
    blind: int = field(default=0, init=False)
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    @property
    def driver(self) -> SelfTestDriver:
        """How its scheduler is asked."""
        return backend_of(self.context.backend).self_test

    @property
    def now_s(self) -> float:
        """Seconds since it opened."""
        return round(self.clock() - self.began, 2)

    def play(self, scenarios: Sequence[Scenario]) -> list[ScenarioRun]:
        """Runs all scenarios, disruptive ones last, while the scheduler is stopped.

        Deletes the remains of an earlier run first and its own objects last, also after Ctrl-C. Raises PaiError if the
        cluster is unreachable, or the remains are not deleted.
        """
        clean(self.cluster, self.driver)
        if left := gone(self.cluster, self.driver, self.pause):
            raise _stays(left)
        try:
            runs = self._all(scenarios)
        finally:
            clean(self.cluster, self.driver)
        if self.waits:
            gone(self.cluster, self.driver, self.pause)
        return runs

    def _all(self, scenarios: Sequence[Scenario]) -> list[ScenarioRun]:
        # made, not applied: a namespace of that name that is someone else's must not become the test's
        self.cluster.create(namespaces(self.context, scenarios))
        self._apply(setting(self.context))
        self.cluster.patch(list(given(self.context.machines, scenarios)))
        ended = self._together([one for one in scenarios if not one.disruptive])
        return [*ended, *self._without_scheduler([one for one in scenarios if one.disruptive])]

    def _without_scheduler(self, scenarios: Sequence[Scenario]) -> list[ScenarioRun]:
        if not scenarios:
            return []
        try:
            stop_controllers(self.cluster, self.driver.namespaces)
            return self._together(scenarios)
        except ApiError as error:  # what was seen before must still be told
            return [refused(begun(one, self.now_s), _answer(error)) for one in scenarios]
        finally:
            start_controllers(self.cluster, self.driver.namespaces)

    def _together(self, scenarios: Sequence[Scenario]) -> list[ScenarioRun]:
        runs = [self._begun(one) for one in scenarios]
        while any(run.step for run in runs):
            self.pause(POLL_S)
            looked = self._look(scenarios)
            if looked:
                runs = [self._moved(run, looked[run.scenario.name]) for run in runs]
        return runs

    def _look(self, scenarios: Sequence[Scenario]) -> dict[str, Sample]:
        """Returns the current sample of every scenario, or {} without a response. Raises PaiError after
        many failures.
        """
        selector = f"{OURS},{RUN}={self.context.run}"
        try:
            (found,) = self.cluster.list(Select(("pods", *self.driver.jobs), labels=selector))
        except PaiError:
            self.blind += 1
            if self.blind > _BLIND:
                raise
            return {}
        self.blind = 0
        return dict(samples(found, scenarios, self.now_s))

    def _begun(self, scenario: Scenario) -> ScenarioRun:
        run = begun(scenario, self.now_s)
        return self._act(run, scenario.steps[0], queue_objects(self.context, scenario))

    def _moved(self, run: ScenarioRun, sample: Sample) -> ScenarioRun:
        """Returns the run after a sample, with the actions of its next step."""
        before, moved = run.step, seen(run, sample)
        if before is None or moved.place == run.place:
            return moved
        moved = explained(moved, before.name, self._answer(run.scenario))
        return moved if moved.step is None else self._act(moved, moved.step)

    def _answer(self, scenario: Scenario) -> str:
        """Returns why jobs are pending, in the scheduler's words, or the last error."""
        warnings = Select(("events",), scenario.namespace, fields="type=Warning")
        words = [Select((kind,), scenario.namespace) for kind in (self.driver.words,) if kind]
        try:
            events, *found = self.cluster.list(warnings, *words)
        except PaiError:
            return ""
        return next(filter(None, map(self.driver.why, found)), "") or last_warning(events)

    def _act(self, run: ScenarioRun, step: ScenarioStep, queues: Sequence[JsonObject] = ()) -> ScenarioRun:
        """Executes the action of a step."""
        scenario = run.scenario
        try:
            for name in step.ends:
                self.cluster.delete([ref_of(entry) for entry in self._gang(scenario, scenario.gangs[name])])
            if victim := run.victim():
                self.cluster.delete([Ref("pods", victim, scenario.namespace)])
            self._apply([*queues, *(entry for gang in step.starts for entry in self._gang(scenario, gang))])
        except ApiError as error:
            return refused(run, _answer(error))
        return run

    def _gang(self, scenario: Scenario, gang: Gang) -> tuple[JsonObject, ...]:
        return gang_objects(self.context, scenario, gang)

    def _apply(self, objects: Sequence[JsonObject]) -> None:
        """Makes objects. Raises ApiError where they are refused again and again."""
        for left in reversed(range(_ATTEMPTS if objects else 0)):
            try:
                self.cluster.apply(objects, force=True)
            except ApiError:
                if not left:
                    raise
                self.pause(2 * POLL_S)
            else:
                return


def _answer(error: ApiError) -> str:
    return f"{error.message} {error.details}".strip()


def _stays(left: Sequence[str]) -> PaiError:
    return PaiError(
        f"cannot remove {plural(len(left), 'object')} of an earlier self-test",
        code="self-test-leftovers",
        details="\n".join(left),
        remedy="find the finalizer with kubectl describe, and check the controller of the scheduler",
    )
