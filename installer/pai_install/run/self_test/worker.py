"""The self-test as local work of a run: arguments in, findings out, recordings kept beside the site."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pai_install.checks.finding import Finding
from pai_install.cluster.client import ClusterClient
from pai_install.run.actions import LocalWorker
from pai_install.run.self_test.runner import Theatre
from pai_install.scheduling.model import Backend
from pai_install.scheduling.selftest.course import Course
from pai_install.scheduling.selftest.judge import Play, judged, started, untried
from pai_install.scheduling.selftest.objects import Cast
from pai_install.scheduling.selftest.promises import PROMISES, left_out, unpromised
from pai_install.scheduling.selftest.record import as_data
from pai_install.scheduling.selftest.scenarios import Bounds, scenarios
from pai_install.system.files import write_atomic


def self_test(cluster: ClusterClient, kept: Path) -> LocalWorker:
    """The worker. kept: the file for what was seen, for the owner only."""

    def work(hosts: Sequence[str], arguments: Mapping[str, Any]) -> tuple[Finding, ...]:
        del hosts
        backend: Backend = arguments["backend"]
        bounds = Bounds(**arguments["bounds"])
        played = tuple(one for one in scenarios(backend, bounds) if arguments["disruptive"] or not one.disruptive)
        places = tuple(arguments["machines"]), tuple(arguments["groups"])
        cast = Cast(backend, secrets.token_hex(4), arguments["image"], *places)
        courses = Theatre(cluster, cast).play(played) if played else []
        _keep(kept, backend, courses)
        return findings(backend, courses, bounds)

    return work


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
