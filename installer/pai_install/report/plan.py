"""A plan as a result: plan.json, and `plan --format json`. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from pai_install.checks.verdict import OPEN
from pai_install.json_schema import Report, ReportObject
from pai_install.plan.model import Action, ClusterCalls, LocalWork, Plan, Playbook, Step
from pai_install.redact import Redactor
from pai_install.report.diffs import FileChange
from pai_install.report.findings import FindingEntry, finding_entries


class CallEntry(ReportObject):
    """A request to the cluster."""

    host: str
    title: str
    verb: str
    arguments: Mapping[str, Any]


class PlaybookEntry(ReportObject):
    """A playbook of Ansible."""

    kind: Literal["playbook"] = "playbook"
    playbook: str
    variables: Mapping[str, Any]


class ClusterCallsEntry(ReportObject):
    """Requests to the cluster."""

    kind: Literal["cluster-calls"] = "cluster-calls"
    calls: tuple[CallEntry, ...]


class LocalWorkEntry(ReportObject):
    """Work on the controller host."""

    kind: Literal["local-work"] = "local-work"
    name: str
    arguments: Mapping[str, Any]


class _Undo(ReportObject):
    """Reverts a step."""

    command: str


class PlaybookUndo(_Undo, PlaybookEntry):
    """A playbook that reverts a step."""


class ClusterCallsUndo(_Undo, ClusterCallsEntry):
    """Requests that revert a step."""


class LocalWorkUndo(_Undo, LocalWorkEntry):
    """Work that reverts a step."""


class HostEntry(ReportObject):
    """A step on one machine."""

    host: str
    reasons: tuple[str, ...]
    effects: tuple[str, ...] = Field(description="Restarts and stops of services.")
    remarks: tuple[str, ...] = Field(validation_alias="impact", description="Consequences for containers and jobs.")


class PhaseEntry(ReportObject):
    """A step of the operation."""

    name: str
    title: str
    action: PlaybookEntry | ClusterCallsEntry | LocalWorkEntry
    undo: PlaybookUndo | ClusterCallsUndo | LocalWorkUndo | None
    needs: tuple[str, ...] = Field(description="Names of the phases before it.")
    hosts: tuple[HostEntry, ...]


class ChangeEntry(ReportObject):
    """A change that a task would make."""

    phase: str
    host: str
    task: str
    diff: str
    digest: str = Field(description="Of the whole diff. Equal digests mean the same change.")


class PlanDocument(Report, title="pai-install plan"):
    """A plan without secrets."""

    schema_version: Literal[2] = 2
    operation: str
    arguments: Mapping[str, Any]
    empty: bool
    phases: tuple[PhaseEntry, ...]
    unreachable: Mapping[str, str]
    refused: Mapping[str, str] = Field(description="Machine to the reason of preflight.")
    findings: tuple[FindingEntry, ...]
    inventory_digest: str = Field(description="Changes with the input of Ansible.")
    previewed: bool
    changes: tuple[ChangeEntry, ...]


def plan_document(
    plan: Plan, changes: tuple[FileChange, ...] | None = None, refused: Mapping[str, str] | None = None
) -> PlanDocument:
    """Returns the plan as a result.

    changes: planned changes, None without a diff. refused: machine -> reason of preflight.
    """
    return PlanDocument(
        operation=plan.operation,
        arguments=plan.redactor.mapping(plan.arguments),
        empty=plan.empty,
        phases=tuple(_phase(step, plan.redactor) for step in plan.steps),
        unreachable=plan.unreachable,
        refused=refused or {},
        findings=finding_entries(finding for finding in plan.findings if finding.verdict in OPEN),
        inventory_digest=_digest(plan),
        previewed=changes is not None,
        changes=tuple(map(ChangeEntry.model_validate, changes or ())),
    )


def _phase(step: Step, redactor: Redactor) -> PhaseEntry:
    return PhaseEntry(
        name=step.name,
        title=step.title,
        action=_action(step.action, redactor),
        undo=_undo(step, redactor),
        needs=tuple(step.needs),
        hosts=tuple(map(HostEntry.model_validate, step.hosts)),
    )


def _action(action: Action, redactor: Redactor) -> PlaybookEntry | ClusterCallsEntry | LocalWorkEntry:
    match action:
        case Playbook(playbook=playbook, variables=variables):
            return PlaybookEntry(playbook=playbook, variables=redactor.mapping(variables))
        case ClusterCalls(calls=calls):
            made = [
                CallEntry(host=call.host, title=call.title, verb=call.verb, arguments=redactor.mapping(call.arguments))
                for call in calls
            ]
            return ClusterCallsEntry(calls=tuple(made))
        case LocalWork(name=name, arguments=arguments):
            return LocalWorkEntry(name=name, arguments=redactor.mapping(arguments))


def _undo(step: Step, redactor: Redactor) -> PlaybookUndo | ClusterCallsUndo | LocalWorkUndo | None:
    if step.undo is None:
        return None
    fields, command = dict(_action(step.undo, redactor)), step.undo_command(step.names)
    match step.undo:
        case Playbook():
            return PlaybookUndo(**fields, command=command)
        case ClusterCalls():
            return ClusterCallsUndo(**fields, command=command)
        case LocalWork():
            return LocalWorkUndo(**fields, command=command)


def _digest(plan: Plan) -> str:
    data = plan.inventory.as_ansible()
    # with the secrets masked: a digest over a short password would be an oracle for guessing it
    masked = plan.inventory.redactor.mapping(data)
    return hashlib.sha256(json.dumps(masked, sort_keys=True, default=str).encode()).hexdigest()
