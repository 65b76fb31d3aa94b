"""A plan, told: as text with a reason per host, and as the JSON that is saved and compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pai_install.plan.model import HostStep, Plan
from pai_install.redact import Redactor, secret_values
from pai_install.report.diffs import FileChange

PLAN_SCHEMA_VERSION = 1
_SHOWN_HOSTS = 10


def plan_data(
    plan: Plan, changes: tuple[FileChange, ...] | None = None, refused: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The published form of a plan; it holds no secret.

    changes: what would change; None where nobody looked. refused: machine -> why preflight keeps it out.
    inventory_digest: tells whether what Ansible would be given is still the same.
    """
    return {
        "schema_version": PLAN_SCHEMA_VERSION,
        "empty": plan.empty,
        "phases": [
            {
                "name": phase.name,
                "title": phase.title,
                "playbook": phase.playbook,
                "needs": list(phase.needs),
                "hosts": [_step(step) for step in phase.hosts],
            }
            for phase in plan.phases
        ],
        "unreachable": dict(plan.unreachable),
        "refused": dict(refused or {}),
        "inventory_digest": _digest(plan),
        "previewed": changes is not None,
        "changes": [change.as_json() for change in changes or ()],
    }


def _step(step: HostStep) -> dict[str, Any]:
    return {
        "host": step.host,
        "reasons": list(step.reasons),
        "effects": list(step.effects),
        "remarks": list(step.remarks),
    }


def plan_text(plan: Plan) -> str:
    """What would run where, and why; hosts with the same reasons share a line."""
    return "\n".join(_lines(plan)) + "\n"


def moved(saved: Mapping[str, Any], plan: Plan) -> tuple[str, ...]:
    """What is different between a saved plan and the present one, as sentences; empty when nothing is."""
    before, after = _steps(saved), _steps(plan_data(plan))
    sentences = [f"{phase} on {host}: not needed any more" for phase, host in before if (phase, host) not in after]
    for (phase, host), reasons in after.items():
        if (phase, host) not in before:
            sentences.append(f"{phase} on {host}: new ({'; '.join(reasons) or 'no reason given'})")
        elif before[phase, host] != reasons:
            sentences.append(
                f"{phase} on {host}: now because {'; '.join(reasons)}, before because {'; '.join(before[phase, host])}"
            )
    sentences += _other_effects(saved, plan_data(plan))
    if saved.get("inventory_digest") != _digest(plan):
        sentences.append("the site's settings or its components are not those of the saved plan")
    return tuple(sentences)


def _other_effects(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Services that would be restarted or stopped now, and of which the saved plan said nothing."""
    known = {(phase["name"], step["host"]): step for phase in before.get("phases", ()) for step in phase["hosts"]}
    for phase in after["phases"]:
        for step in phase["hosts"]:
            said = known.get((phase["name"], step["host"]), step).get("effects", ())
            new = [effect for effect in step["effects"] if effect not in said]
            if new:
                yield f"{phase['name']} on {step['host']}: now also {'; '.join(new)}"


def _lines(plan: Plan) -> Iterator[str]:
    for host, why in plan.unreachable.items():
        yield f"{host} could not be looked at: {why}"
    if plan.empty:
        yield "nothing to do: every machine that answered is what the site says"
        return
    for number, phase in enumerate(plan.phases, start=1):
        yield f"{number}. {phase.title} ({phase.name})"
        for (reasons, effects, remarks), hosts in _alike(phase.hosts).items():
            yield f"   {_names(hosts)}: {'; '.join(reasons) or 'always'}"
            if effects:
                yield f"      {'; '.join((*effects, *remarks))}"


def _alike(steps: tuple[HostStep, ...]) -> dict[tuple[tuple[str, ...], ...], list[str]]:
    groups: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for step in steps:
        groups.setdefault((step.reasons, step.effects, step.remarks), []).append(step.host)
    return groups


def _names(hosts: list[str]) -> str:
    shown = ", ".join(hosts[:_SHOWN_HOSTS])
    return f"{shown} and {len(hosts) - _SHOWN_HOSTS} more" if len(hosts) > _SHOWN_HOSTS else shown


def _steps(data: Mapping[str, Any]) -> dict[tuple[str, str], tuple[str, ...]]:
    return {
        (phase["name"], step["host"]): tuple(step["reasons"])
        for phase in data.get("phases", ())
        for step in phase["hosts"]
    }


def _digest(plan: Plan) -> str:
    data = plan.inventory.as_ansible()
    # with the secrets masked: a digest over a short password would be an oracle for guessing it
    masked = Redactor(secret_values(data)).mapping(data)
    return hashlib.sha256(json.dumps(masked, sort_keys=True, default=str).encode()).hexdigest()
