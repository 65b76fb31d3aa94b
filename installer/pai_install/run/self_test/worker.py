"""The self-test as local work of a run: arguments in, findings out, recordings kept beside the site."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.cluster.client import ClusterClient, Select
from pai_install.cluster.takers import takers_of
from pai_install.run.actions import LocalWorker
from pai_install.run.self_test.runner import Theatre
from pai_install.scheduling.model import Backend
from pai_install.scheduling.selftest.course import Course
from pai_install.scheduling.selftest.judge import Play, judged, started, untried
from pai_install.scheduling.selftest.objects import Cast
from pai_install.scheduling.selftest.promises import PROMISES, START, left_out, unpromised
from pai_install.scheduling.selftest.record import as_data
from pai_install.scheduling.selftest.scenarios import QUICK, Bounds, scenarios
from pai_install.scheduling.selftest.volcano import node_groups
from pai_install.system.files import write_atomic


def self_test(cluster: ClusterClient, kept: Path) -> LocalWorker:
    """The worker. kept: the file for what was seen, for the owner only."""

    def work(hosts: Sequence[str], arguments: Mapping[str, Any]) -> tuple[Finding, ...]:
        del hosts
        if "workers" in arguments:
            return _quick(cluster, kept, arguments)
        backend: Backend = arguments["backend"]
        bounds = Bounds(**arguments["bounds"])
        played = tuple(one for one in scenarios(backend, bounds) if arguments["disruptive"] or not one.disruptive)
        places = tuple(arguments["machines"]), tuple(arguments["groups"])
        cast = Cast(backend, secrets.token_hex(4), arguments["image"], *places)
        courses = Theatre(cluster, cast).play(played) if played else []
        _keep(kept, backend, courses)
        return findings(backend, courses, bounds)

    return work


def _quick(cluster: ClusterClient, kept: Path, arguments: Mapping[str, Any]) -> tuple[Finding, ...]:
    """The most important scenarios, on the workers that take pods now; only what was tried is told."""
    machines = takers_of(arguments["workers"], cluster.list(Select(("nodes",)))[0])
    if not machines:
        return (untried(START, "no worker is Ready and takes pods; pai-install scheduler test tries it later"),)
    backend: Backend = arguments["backend"]
    bounds = Bounds(**arguments["bounds"])
    played = tuple(one for one in scenarios(backend, bounds) if one.name in QUICK)
    names = tuple(node.name for node in machines)
    cast = Cast(
        backend, secrets.token_hex(4), arguments["image"], names, tuple(node_groups(node.labels for node in machines))
    )
    courses = Theatre(cluster, cast).play(played)
    _keep(kept, backend, courses)
    return tuple(one for one in findings(backend, courses, bounds) if one.verdict is not Verdict.SKIP)


def findings(backend: Backend, courses: Sequence[Course], bounds: Bounds) -> tuple[Finding, ...]:
    """One for every promise that any scheduler makes, in their order."""
    found = {finding.id: finding for finding in _judged(backend, courses, bounds)}
    return tuple(found[check] for check in PROMISES if check in found)


def _judged(backend: Backend, courses: Sequence[Course], bounds: Bounds) -> Iterator[Finding]:
    plays = [Play(course.scenario, course.recording, bounds.back_s) for course in courses]
    if plays:
        yield started(plays)
    for play in plays:
        yield from judged(play)
    played = tuple(course.scenario for course in courses)
    for check, reason in (*unpromised(backend), *left_out(backend, played)):
        yield untried(check, reason)


def _keep(path: Path, backend: Backend, courses: Sequence[Course]) -> None:
    recordings = [as_data(course.recording) for course in courses]
    write_atomic(path, json.dumps({"backend": backend, "recordings": recordings}) + "\n", mode=0o600)
