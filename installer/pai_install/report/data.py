"""The report as JSON data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pai_install.report.model import SCHEMA_VERSION, HostResult, Outcome, PhaseResult


def report_data(outcome: Outcome) -> dict[str, Any]:
    """Returns the published form: {schema_version, ok, exit_code, duration_s, hosts, phases, findings}.

    hosts: NAME -> task counts over all phases. phases: results of each phase on each of its hosts, with failures. A
    phase that Ansible could not run has a failure of its own.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "ok": outcome.ok,
        "exit_code": int(outcome.exit_code),
        "duration_s": outcome.duration_s,
        "hosts": {host: asdict(counts) for host, counts in outcome.counts.items()},
        "phases": [_phase(phase) for phase in outcome.phases],
        "findings": [finding.as_json() for finding in outcome.findings],
    }


def _phase(phase: PhaseResult) -> dict[str, Any]:
    return {
        "name": phase.name,
        "title": phase.title,
        "duration_s": phase.duration_s,
        "hosts": {host: _host(result) for host, result in phase.hosts.items()},
        "failure": asdict(phase.failure) if phase.failure else None,
        "undo": phase.undo,
    }


def _host(result: HostResult) -> dict[str, Any]:
    return {
        "status": result.status.value,
        **asdict(result.counts),
        "changes": [asdict(change) for change in result.changes],
        "failure": asdict(result.failure) if result.failure else None,
        "why": result.why,
    }
