"""Machines that were changed and not verified since, in the state folder. docs/decisions/005 gives the reason."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.plan.model import Plan, Playbook, Step
from pai_install.report.model import HostResult, HostStatus, Outcome
from pai_install.system.files import write_atomic
from pai_install.system.state_file import MISSING, reading


class VerificationGap(BaseModel):
    """Why a machine is not proven: a sentence without a full stop. failed: its last proof was made, and failed.

    operation: the operation that changed the machine. Empty: unknown.
    """

    model_config = ConfigDict(frozen=True)
    why: str
    failed: bool = False
    operation: str = ""


class Proof(BaseModel):
    """unproven: machine -> why. A machine that is not named works, as far as the controller host knows."""

    model_config = ConfigDict(frozen=True)
    schema_version: int = 1
    unproven: Mapping[str, VerificationGap] = Field(default_factory=dict)

    @property
    def reasons(self) -> dict[str, str]:
        """Machine -> why."""
        return {host: entry.why for host, entry in self.unproven.items()}


def read_proof(path: Path) -> Proof:
    """Returns the proof in the file, empty for a missing one. Raises PaiError for a damaged one."""
    try:
        with reading(path, "remove it, then run pai-install verify"):
            return Proof.model_validate_json(path.read_bytes())
    except MISSING:
        return Proof()


def write_proof(path: Path, proof: Proof) -> None:
    """Writes the file, for the owner only."""
    write_atomic(path, json.dumps(proof.model_dump(mode="json"), indent=2) + "\n", mode=0o600)


def begun(proof: Proof, plan: Plan, hosts: Sequence[str], run: str) -> Proof:
    """The proof as a run begins: the machines to change count as not proven until verified."""
    changing = (host for step in plan.steps if _changes(step) for host in step.names if host in hosts)
    entries = {
        host: VerificationGap(why=f"run {run} was interrupted while it changed the machine", operation=plan.operation)
        for host in dict.fromkeys(changing)
        if not _of_another(proof, plan, host)
    }
    return Proof(unproven={**proof.unproven, **entries})


def ended(before: Proof, plan: Plan, outcome: Outcome, run: str) -> Proof:
    """The proof as a run ends. before: the proof when the run began."""
    entries = dict(before.unproven)
    for host in _changed(plan, outcome):
        if not _of_another(before, plan, host):
            why = f"run {run} changed it and did not verify it"
            entries[host] = VerificationGap(why=why, operation=plan.operation)
    for host, results in _results(plan, outcome, proving=True).items():
        another = _of_another(before, plan, host)
        entry = _verdict(host, results, plan, outcome, run)
        if entry is not None:
            operation = before.unproven[host].operation if another else plan.operation
            entries[host] = entry.model_copy(update={"operation": operation})
        elif not another and all(result.status.good for result in results):
            entries.pop(host, None)
    return Proof(unproven=entries)


def _of_another(proof: Proof, plan: Plan, host: str) -> bool:
    """Whether another operation left the machine unproven, and the plan verifies only its own changes."""
    entry = proof.unproven.get(host)
    return plan.proves_own and entry is not None and entry.operation != plan.operation


def _changes(step: Step) -> bool:
    return isinstance(step.action, Playbook) and not (step.proves or step.looks)


def _results(plan: Plan, outcome: Outcome, *, proving: bool) -> dict[str, list[HostResult]]:
    """Returns host -> its results in the verifying steps, or in the changing steps."""
    names = {step.name for step in plan.steps if (step.proves if proving else _changes(step))}
    found: dict[str, list[HostResult]] = {}
    for phase in outcome.phases:
        for host, result in phase.hosts.items() if phase.name in names else ():
            found.setdefault(host, []).append(result)
    return found


def _changed(plan: Plan, outcome: Outcome) -> list[str]:
    """The hosts on which something was changed, or may have been."""
    # A task may have changed the machine before it failed or was interrupted.
    unsure = (HostStatus.CHANGED, HostStatus.FAILED, HostStatus.INTERRUPTED, HostStatus.UNREACHABLE)
    results = _results(plan, outcome, proving=False)
    return [host for host, found in results.items() if any(result.status in unsure for result in found)]


def _verdict(
    host: str, results: Sequence[HostResult], plan: Plan, outcome: Outcome, run: str
) -> VerificationGap | None:
    """Returns the problem that the verification found, or None without a problem or a verification."""
    if any(result.status is HostStatus.FAILED for result in results):
        return VerificationGap(why=f"run {run} could not verify it", failed=True)
    if not any(result.status.good for result in results):
        return None
    checks = dict.fromkeys(finding.id for finding in outcome.findings if _about(finding, host, plan))
    return VerificationGap(why=f"run {run} found {', '.join(checks)} failed", failed=True) if checks else None


def _about(finding: Finding, host: str, plan: Plan) -> bool:
    """Whether a failed check counts for a host: checks of the host and of the whole cluster do."""
    others = set(plan.inventory.host_vars) - {host}
    return finding.verdict is Verdict.FAIL and finding.subject not in others
