"""The last runs of a site, as the cluster keeps them for the console: results without output of machines. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pai_install.checks.verdict import Verdict
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, text
from pai_install.report.model import OBSERVE, Failure, HostStatus, Outcome
from pai_install.report.words import host_word
from pai_install.system.words import clipped

RUNS = Ref("configmap", "pai-install-runs", "kube-system")
_KEY = "runs.json"
_MOST_RUNS, _MOST_ROWS, _MOST_TEXT = 20, 30, 200
_MOST_BYTES = 256 * 1024


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class FailedTask(_Model):
    """A failed task of a machine. cause, remedy: of the table of known causes, or empty."""

    machine: str
    task: str = ""
    cause: str = ""
    remedy: str = ""


class RunSummary(_Model):
    """A run. machines: result -> number of machines. others: machine -> result, of machines that are not done.

    more: machines and failures that are left out. checks: failed checks.
    """

    run: str
    verb: str
    exit_code: int
    duration_s: float = 0
    changed: int = 0
    machines: Mapping[str, int] = {}
    others: Mapping[str, str] = {}
    failures: tuple[FailedTask, ...] = ()
    checks: tuple[str, ...] = ()
    more: int = 0


class RunHistory(_Model):
    """The last runs, the latest first."""

    runs: tuple[RunSummary, ...] = ()


def is_worth_keeping(outcome: Outcome) -> bool:
    """Whether a run changed or found something. A run with nothing to do leaves no entry."""
    statuses = {host.status for phase in outcome.phases for host in phase.hosts.values() if phase.name != OBSERVE}
    return not outcome.ok or HostStatus.CHANGED in statuses


def summary_of(outcome: Outcome, run: str, verb: str) -> RunSummary:
    """The result of a run, without messages and output of machines, which may hold anything."""
    hosts = dict.fromkeys(name for phase in outcome.phases for name in phase.hosts)
    worst = {name: host_word(outcome, name) for name in hosts}
    others = {name: status.value for name, status in worst.items() if not status.good}
    failures = list(_failures(outcome))
    checks = [f"{it.subject}: {it.id}" for it in outcome.findings if it.verdict is Verdict.FAIL]
    left = sum(max(len(rows) - _MOST_ROWS, 0) for rows in (others, failures, checks))
    return RunSummary(
        run=run,
        verb=verb,
        exit_code=outcome.exit_code,
        duration_s=round(outcome.duration_s, 1),
        changed=sum(counts.changed for counts in outcome.counts.values()),
        machines=Counter(status.value for status in worst.values()),
        others=dict(list(others.items())[:_MOST_ROWS]),
        failures=tuple(failures[:_MOST_ROWS]),
        checks=tuple(_short(one) for one in checks[:_MOST_ROWS]),
        more=left,
    )


def _failures(outcome: Outcome) -> Iterator[FailedTask]:
    for phase in outcome.phases:
        found = [phase.failure, *(host.failure for host in phase.hosts.values())]
        yield from (_failed(one) for one in found if one is not None)


def _failed(failure: Failure) -> FailedTask:
    return FailedTask(
        machine=_short(failure.host),
        task=_short(failure.task),
        cause=_short(failure.cause),
        remedy=_short(failure.remedy),
    )


def _short(word: str) -> str:
    return clipped(word, _MOST_TEXT)


def with_run(found: Mapping[str, Any] | None, summary: RunSummary) -> JsonObject:
    """The ConfigMap with one run more. The oldest ones go."""
    others = [one for one in run_history(found).runs if one.run != summary.run]
    runs = [summary, *others][:_MOST_RUNS]
    content = RunHistory(runs=tuple(runs)).model_dump_json()
    # A ConfigMap has a limit of 1 MiB. The oldest runs make room, and the newest one always stays.
    while len(content) > _MOST_BYTES and len(runs) > 1:
        runs.pop()
        content = RunHistory(runs=tuple(runs)).model_dump_json()
    metadata = {"name": RUNS.name, "namespace": RUNS.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_KEY: content}}


def run_history(found: Mapping[str, Any] | None) -> RunHistory:
    """The runs in the ConfigMap. None of a missing or damaged one."""
    content = text(child(found or {}, "data").get(_KEY))
    try:
        # Anyone with rights to the ConfigMap can write into it. A huge one is not even parsed.
        return RunHistory.model_validate_json(content) if len(content) <= 4 * _MOST_BYTES else RunHistory()
    except ValidationError:
        return RunHistory()
