"""A plan as text with a reason per host, and its differences from a saved one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pai_install.checks.verdict import OPEN
from pai_install.plan.model import HostStep, Plan
from pai_install.report.diffs import FileChange
from pai_install.report.plan import plan_document
from pai_install.system.words import plural, shortened

_SHOWN_HOSTS = 10


def plan_text(plan: Plan) -> str:
    """Returns the steps, machines, and reasons. Hosts with the same reasons share a line."""
    return "\n".join(_lines(plan)) + "\n"


def plan_summary(plan: Plan, changes: Sequence[FileChange] | None) -> str:
    """Returns the last lines of a plan: its consequences for jobs, and its size. changes: None without a diff."""
    if plan.empty:
        return ""
    restarts = {(host.host, effect) for step in plan.steps for host in step.hosts for effect in host.effects}
    files = {(change.host, count.path) for change in changes or () for count in change.counts if count.path}
    parts = [
        f"{_participants(plan)} in {plural(len(plan.steps), 'phase')}",
        *([f"{plural(len(files), 'file')} to change"] if changes is not None else []),
        plural(sum("restart" in effect for _, effect in restarts), "restart"),
        *([f"{plural(len(plan.unreachable), 'machine')} not observed"] if plan.unreachable else []),
    ]
    jobs = [plan.jobs] if plan.jobs else []
    return "\n".join([*jobs, f"Plan: {', '.join(parts)}."]) + "\n"


def _participants(plan: Plan) -> str:
    """Counts the machines, or the other subjects, of a plan."""
    subjects = {step.subject for step in plan.steps}
    return plural(len(plan.hosts), subjects.pop() if len(subjects) == 1 else "machine")


def plan_changes(saved: Mapping[str, Any], plan: Plan) -> tuple[str, ...]:
    """The differences between a saved plan and the present one, as sentences."""
    present = plan_document(plan).as_json()
    before, after = _steps(saved), _steps(present)
    sentences = [f"{phase} on {host}: no longer needed" for phase, host in before if (phase, host) not in after]
    for (phase, host), reasons in after.items():
        if (phase, host) not in before:
            sentences.append(f"{phase} on {host}: new ({'; '.join(reasons) or 'no reason given'})")
        elif before[phase, host] != reasons:
            sentences.append(
                f"{phase} on {host}: now because {'; '.join(reasons)}, before because {'; '.join(before[phase, host])}"
            )
    sentences += _other_effects(saved, present)
    sentences += _other_actions(saved, present)
    if saved.get("inventory_digest") != present["inventory_digest"]:
        sentences.append("the site's settings or its components are not those of the saved plan")
    return tuple(sentences)


def _other_effects(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Services that would be restarted or stopped now, and of which the saved plan said nothing."""
    known = {(phase["name"], step["host"]): step for phase in before.get("phases", ()) for step in phase["hosts"]}
    for phase in after["phases"]:
        for step in phase["hosts"]:
            effects = known.get((phase["name"], step["host"]), step).get("effects", ())
            new = [effect for effect in step["effects"] if effect not in effects]
            if new:
                yield f"{phase['name']} on {step['host']}: now also {'; '.join(new)}"


def _other_actions(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Steps that would do something else to the same hosts for the same reasons."""
    known = {step["name"]: step["action"] for step in before.get("phases", ())}
    for step in after["phases"]:
        if known.get(step["name"], step["action"]) != step["action"]:
            yield f"{step['name']} would do something else"


def _lines(plan: Plan) -> Iterator[str]:
    for host, why in plan.unreachable.items():
        yield f"cannot observe {host}: {why}"
    for finding in plan.findings:
        if finding.verdict in OPEN:
            yield f"{finding.verdict.value} {finding.where}: {finding.message}"
            yield from ([f"   what to do: {finding.remedy}"] if finding.remedy else [])
    if plan.empty:
        yield "nothing is planned: no machine answered" if plan.silent else f"nothing to do: {plan.nothing}"
        return
    for number, step in enumerate(plan.steps, start=1):
        yield f"{number}. {step.title} ({step.name})"
        for (reasons, effects, impact), hosts in _alike(step.hosts).items():
            yield f"   {_names(hosts)}: {'; '.join(reasons) or 'always'}"
            if effects or impact:
                yield f"      {'; '.join((*effects, *impact))}"
        if command := step.undo_command(step.names):
            yield f"   undo: {command}"


def _alike(steps: tuple[HostStep, ...]) -> dict[tuple[tuple[str, ...], ...], list[str]]:
    groups: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for step in steps:
        groups.setdefault((step.reasons, step.effects, step.impact), []).append(step.host)
    return groups


def _names(hosts: list[str]) -> str:
    return shortened(hosts, _SHOWN_HOSTS)


def _steps(data: Mapping[str, Any]) -> dict[tuple[str, str], tuple[str, ...]]:
    return {
        (phase["name"], step["host"]): tuple(step["reasons"])
        for phase in data.get("phases", ())
        for step in phase["hosts"]
    }
