"""Collects the events of one phase to a result per host. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pai_install.checks.finding import Finding, parse_finding
from pai_install.checks.verdict import Verdict
from pai_install.engine.base import Event, EventKind
from pai_install.redact import Redactor
from pai_install.report.causes import cause_of
from pai_install.report.model import Counts, Failure, HostResult, HostStatus, TaskRecord
from pai_install.system.plain import one_line

_EVIDENCE_CHARACTERS = 4000
_MESSAGE_CHARACTERS = 4000
_ADVICE_CHARACTERS = 1000
# modules that run on a control plane for all machines; which module it was is Ansible's word, not the machine's
_OF_THE_CLUSTER = ("pai_cluster_check", "pai_storage_probe")
_NO_TRACEBACK = "(traceback unavailable)"  # Ansible's words where it kept none

# What one event of a kind adds to a host's counts.
_WEIGHTS: Mapping[EventKind, Counts] = {
    EventKind.OK: Counts(ok=1, tasks=1),
    EventKind.CHANGED: Counts(ok=1, changed=1, tasks=1),
    EventKind.IGNORED: Counts(ok=1, tasks=1),
    EventKind.FAILED: Counts(failed=1, tasks=1),
    EventKind.UNREACHABLE: Counts(unreachable=1, tasks=1),
    EventKind.SKIPPED: Counts(skipped=1),
}


@dataclass
class _Host:
    counts: Counts = field(default_factory=Counts)
    changes: list[TaskRecord] = field(default_factory=list)
    failed: Event | None = None
    unreachable: Event | None = None


class HostResults:
    """Collects the events of one phase and gives the result of each host, secrets masked."""

    def __init__(self, hosts: Sequence[str], redactor: Redactor) -> None:
        self._hosts = {host: _Host() for host in hosts}
        self._redactor = redactor
        self._done: Event | None = None
        self._ignored: Event | None = None
        self.findings: list[Finding] = []

    def add(self, event: Event) -> None:
        """Counts one event."""
        if event.kind is EventKind.DONE:
            self._done = event
        if not event.host:
            return
        host = self._hosts.setdefault(event.host, _Host())
        host.counts += _WEIGHTS[event.kind]
        self._collect_findings(event)
        if event.kind is EventKind.IGNORED:
            self._ignored = event
        elif event.kind is EventKind.CHANGED:
            host.changes.append(
                TaskRecord(self._redactor.text(event.task), event.task_path, round(event.duration_s, 3))
            )
        elif event.kind is EventKind.FAILED:
            host.failed = event
        elif event.kind is EventKind.UNREACHABLE:
            host.unreachable = event

    def results(self, *, complete: bool) -> dict[str, HostResult]:
        """Returns host -> result. complete: the run reached its end. Otherwise hosts without a failure are
        interrupted.
        """
        return {name: self._result(name, host, complete=complete) for name, host in self._hosts.items()}

    def _result(self, name: str, host: _Host, *, complete: bool) -> HostResult:
        counts = host.counts
        changes = tuple(host.changes)
        # A play may rescue or ignore such an event. Only Ansible's count says that the machine is lost.
        if host.unreachable is not None and self._counted("dark", name):
            failure = failure_of(host.unreachable, self._redactor)
            return HostResult(HostStatus.UNREACHABLE, counts, failure, changes)
        if host.failed is not None and self._counted("failures", name):
            return HostResult(HostStatus.FAILED, counts, failure_of(host.failed, self._redactor), changes)
        if complete and self._ended_early():
            failure = Failure(
                name, message=f"Ansible ended the phase early: {self._ignored_message() or 'no reason given'}"
            )
            return HostResult(HostStatus.FAILED, counts, failure, changes)
        if complete and counts == Counts():
            return HostResult(HostStatus.LEFT, why="the phase ended before it was this machine's turn")
        # Ansible does not count it as failed: the play rescued it
        counts = replace(counts, ok=counts.ok + counts.failed, failed=0) if host.failed else counts
        if not complete:
            return HostResult(HostStatus.INTERRUPTED, counts, changes=changes)
        return HostResult(HostStatus.CHANGED if counts.changed else HostStatus.OK, counts, changes=changes)

    def _ended_early(self) -> bool:
        """Whether Ansible ended with an error that it counts for no machine, as with run_once tasks."""
        done = self._done
        return done is not None and done.returncode != 0 and not any(done.result.get(k) for k in ("failures", "dark"))

    def _ignored_message(self) -> str:
        return _message(self._redactor.mapping(self._ignored.result)) if self._ignored else ""

    def _counted(self, name: str, host: str) -> bool:
        stats = self._done.result if self._done is not None else {}
        # A run that was cut has no counts, so each of its events counts.
        return not stats or bool(stats.get(name, {}).get(host))

    def _collect_findings(self, event: Event) -> None:
        raw = event.result.get("findings")
        for item in raw if isinstance(raw, list) else ():
            if isinstance(item, Mapping):
                self.findings.append(_finding(event, self._redactor.mapping(item)))


def _finding(event: Event, raw: Mapping[str, Any]) -> Finding:
    """Returns a finding of a machine about itself, or of a control-plane node about the cluster. A remedy names its
    source.
    """
    finding = parse_finding({name: one_line(str(value or "")) for name, value in raw.items()}, subject=event.host)
    if event.action in _OF_THE_CLUSTER:
        return finding._replace(remedy=quoted("the control plane", finding.remedy))
    # A machine may judge only itself. Otherwise it could spoil the result of another machine.
    if finding.subject != event.host:
        message = f"it speaks of {finding.subject[:100]}, which is not its to judge"
        return Finding(finding.id[:100], Verdict.UNKNOWN, event.host, message)
    return finding._replace(remedy=quoted(event.host, finding.remedy))


def failure_of(event: Event, redactor: Redactor) -> Failure:
    """The failure in a failed or unreachable event, with its cause where a known one matches."""
    result = redactor.mapping(event.result)
    message, evidence = _message(result)[:_MESSAGE_CHARACTERS], _evidence(result)
    known = cause_of(f"{message}\n{evidence}", unreachable=event.kind is EventKind.UNREACHABLE)
    return Failure(
        host=event.host,
        task=redactor.text(event.task),
        task_path=event.task_path,
        message=message,
        evidence=evidence,
        cause=known.cause if known else "",
        remedy=quoted(event.host, str(result.get("remedy") or "")) or (known.remedy if known else ""),
    )


def quoted(host: str, advice: str) -> str:
    """Returns a machine's remedy on one line with its source, or ""."""
    return f"{host} says: {one_line(advice)[:_ADVICE_CHARACTERS]}" if advice.strip() else ""


def _message(result: Mapping[str, Any]) -> str:
    # Ansible replaces the result of a no_log task by the key `censored`.
    if "censored" in result and "msg" not in result:
        return "the task handles secrets, so its output is hidden; see the task named here"
    # The message of a loop only says that items failed. The items have the causes.
    failed = [item for item in _items(result) if item.get("failed")]
    if failed:
        return "; ".join(dict.fromkeys(_message(item) for item in failed))
    return str(result.get("msg") or "no message").strip()


def _evidence(result: Mapping[str, Any]) -> str:
    parts = [
        text
        for part in (result, *(item for item in _items(result) if item.get("failed")))
        for text in (*_named_evidence(part), *_output(part))
    ]
    return "\n".join(dict.fromkeys(parts))[-_EVIDENCE_CHARACTERS:]


def _output(result: Mapping[str, Any]) -> Iterator[str]:
    for key in ("module_stderr", "module_stdout", "stderr", "stdout", "exception"):
        if result.get(key) and result[key] != _NO_TRACEBACK:
            yield str(result[key]).strip()


def _named_evidence(result: Mapping[str, Any]) -> Iterator[str]:
    """The evidence that our own modules return with a failure: {source: lines}."""
    named = result.get("evidence")
    for name, lines in named.items() if isinstance(named, Mapping) else ():
        if isinstance(lines, list) and lines:
            yield "\n".join([f"{name}:", *(f"  {line}" for line in lines)])


def _items(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    items = result.get("results")
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
