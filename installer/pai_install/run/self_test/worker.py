"""The self-test as local work of a run: arguments in, findings out, recordings kept beside the site."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.cluster.client import ClusterClient, Select
from pai_install.kube.schedulable import takers_of
from pai_install.run.actions import LocalWorker
from pai_install.run.self_test.runner import SelfTestRunner
from pai_install.schedulers.hived.self_test import busy, programme
from pai_install.schedulers.last_applied import kept_of
from pai_install.schedulers.registry import backend_of
from pai_install.schedulers.self_test.guarantees import PROMISES, START, left_out
from pai_install.schedulers.self_test.judge import RecordedScenario, judged, started, untried
from pai_install.schedulers.self_test.manifests import scenarios
from pai_install.schedulers.self_test.model import Scenario
from pai_install.schedulers.self_test.objects import SelfTestContext
from pai_install.schedulers.self_test.record import as_data
from pai_install.schedulers.self_test.scenario_run import ScenarioRun
from pai_install.schedulers.self_test.scenarios import Bounds
from pai_install.scheduling.model import Backend, Scheduling
from pai_install.system.files import write_atomic


def self_test(cluster: ClusterClient, kept: Path) -> LocalWorker:
    """Returns the worker. kept: the file for observations, for the owner only."""

    def work(hosts: Sequence[str], arguments: Mapping[str, Any]) -> tuple[Finding, ...]:
        del hosts
        if "workers" in arguments:
            return _quick(cluster, kept, arguments)
        backend: Backend = arguments["backend"]
        bounds = Bounds(**arguments["bounds"])
        places = tuple(arguments["machines"]), tuple(arguments["groups"])
        context = SelfTestContext(backend, secrets.token_hex(4), arguments["image"], *places)

        def wanted(scenario: Scenario) -> bool:
            return bool(arguments["disruptive"]) or not scenario.disruptive

        runs, reasons = _played(cluster, context, arguments, bounds, wanted)
        _keep(kept, backend, runs)
        return findings(backend, runs, reasons)

    return work


def _quick(cluster: ClusterClient, kept: Path, arguments: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Runs the most important scenarios on the currently schedulable workers. Returns findings of executed
    ones only.
    """
    machines = takers_of(arguments["workers"], cluster.list(Select(("nodes",)))[0])
    if not machines:
        return (untried(START, "no worker is Ready and takes pods; pai-install scheduler test tries it later"),)
    backend: Backend = arguments["backend"]
    bounds = Bounds(**arguments["bounds"])
    names = tuple(node.name for node in machines)
    groups = backend_of(backend).self_test.node_groups(node.labels for node in machines)
    context = SelfTestContext(backend, secrets.token_hex(4), arguments["image"], names, tuple(groups))
    runs, reasons = _played(
        cluster, context, arguments, bounds, lambda scenario: scenario.name in arguments["scenarios"]
    )
    _keep(kept, backend, runs)
    if not runs:
        return (untried(START, f"{'; '.join(dict.fromkeys(reasons.values()))}; pai-install scheduler test tries it"),)
    found = findings(backend, runs, reasons)
    return tuple(one for one in found if one.verdict is not Verdict.SKIP)


def _played(
    cluster: ClusterClient,
    context: SelfTestContext,
    arguments: Mapping[str, Any],
    bounds: Bounds,
    wanted: Callable[[Scenario], bool],
) -> tuple[list[ScenarioRun], Mapping[str, str]]:
    """Returns the wanted scenarios, and check -> why this run skipped it."""
    if not backend_of(context.backend).self_test.knows_devices:
        scheduling = kept_of(arguments["kept"])
        assert scheduling is not None  # noqa: S101 - the operation has made it
        return _in_turn(cluster, context, scheduling, bounds, wanted, waits=arguments.get("waits", True))
    played = tuple(filter(wanted, scenarios(context.backend, bounds)))
    runner = SelfTestRunner(cluster, context, waits=arguments.get("waits", True))
    return (runner.play(played) if played else []), {}


def _in_turn(
    cluster: ClusterClient,
    context: SelfTestContext,
    scheduling: Scheduling,
    bounds: Bounds,
    wanted: Callable[[Scenario], bool],
    *,
    waits: bool,
) -> tuple[list[ScenarioRun], Mapping[str, str]]:
    """Runs HiveD's scenarios one after the other in one virtual cluster. A user's job invalidates a scenario and ends
    the test.
    """
    nodes, pods = cluster.list(Select(("nodes",)), Select(("pods",)))
    found = programme(scheduling, nodes, pods, bounds)
    acts = [act for act in found.acts if wanted(act.scenario)]
    runs: list[ScenarioRun] = []
    for number, act in enumerate(acts):
        played = SelfTestRunner(cluster, replace(context, cells=act.stage), waits=waits).play((act.scenario,))
        if busy(scheduling, act.stage.sku, cluster.list(Select(("pods",)))[0]):
            missed = [check for left in acts[number:] for check in left.scenario.checks]
            return runs, {**found.reasons, **dict.fromkeys(missed, "a user's job came meanwhile")}
        runs += played
    return runs, found.reasons


def findings(
    backend: Backend, runs: Sequence[ScenarioRun], reasons: Mapping[str, str] | None = None
) -> tuple[Finding, ...]:
    """One for every promise that any scheduler makes, in their order. reasons: check -> why it was not tried."""
    found = {finding.id: finding for finding in _judged(backend, runs, reasons)}
    return tuple(found[check] for check in PROMISES if check in found)


def _judged(backend: Backend, runs: Sequence[ScenarioRun], reasons: Mapping[str, str] | None) -> Iterator[Finding]:
    recorded = [RecordedScenario(run.scenario, run.recording) for run in runs]
    if recorded:
        yield started(recorded)
    for run in recorded:
        yield from judged(run)
    played = tuple(run.scenario for run in runs)
    for check, reason in left_out(backend_of(backend).self_test.unsupported, played, reasons):
        yield untried(check, reason)


def _keep(path: Path, backend: Backend, runs: Sequence[ScenarioRun]) -> None:
    recordings = [as_data(run.recording) for run in runs]
    write_atomic(path, json.dumps({"backend": backend, "recordings": recordings}) + "\n", mode=0o600)
