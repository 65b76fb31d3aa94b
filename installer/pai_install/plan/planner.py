"""The planner: steps, machines, and reasons. Pure: all input is passed as values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from pai_install.parts.addon import RECORD_PREFIX
from pai_install.plan.effects import effects, impact
from pai_install.plan.leader import leader_of, with_leader
from pai_install.plan.model import HostStep, Inventory, Plan, Playbook, Step
from pai_install.plan.narrowing import narrowed
from pai_install.plan.observed import Observed, RoleRecord
from pai_install.plan.phases import PHASES, Phase
from pai_install.site import Site

STORE = "components"
CONTROL_PLANE = "control-plane"


def make_plan(
    site: Site,
    inventory: Inventory,
    observed: Mapping[str, Observed],
    *,
    unreachable: Mapping[str, str] | None = None,
    phases: Collection[str] = (),
    limit: Collection[str] = (),
) -> Plan:
    """Returns the phases with work in order, with hosts and reasons.

    observed: responding machines. phases, limit: filters. A phase selected by name runs on its machines even without
    work. Missing dependencies of the `limit` machines on others are included.
    """
    planned = tuple(
        step
        for phase in PHASES
        if not phases or phase.name in phases
        if (step := _planned(phase, site, inventory, observed, limit, forced=phase.name in phases)) is not None
    )
    if limit:
        planned = _narrowed(planned, site, inventory, observed, limit)
    leader = leader_of(site, observed)
    planned = tuple(_led(step, leader) for step in planned)
    lost = dict(unreachable or {})
    return Plan(planned, with_leader(inventory, leader), lost, leader)


def _led(step: Step, leader: str) -> Step:
    """The step of the control planes begins with the leader, which is not always the first of the site."""
    if step.name != CONTROL_PLANE:
        return step
    return replace(step, action=Playbook(f"{CONTROL_PLANE}.yml", {"pai_leader": leader}))


def _narrowed(
    planned: tuple[Step, ...],
    site: Site,
    inventory: Inventory,
    observed: Mapping[str, Observed],
    limit: Collection[str],
) -> tuple[Step, ...]:
    phases = {phase.name: phase for phase in PHASES}
    leader = leader_of(site, observed)
    hosts = {name: {machine.hostname for machine in phase.machines(site)} for name, phase in phases.items()}
    return narrowed(
        planned,
        limit,
        applies=lambda name, host: host in hosts[name],
        ready=lambda name, host: _ready(phases[name], inventory.settings_of(host), observed[host]),
        gives=lambda name, host: _gives_other(
            phases[name], inventory.settings_of(host), observed[host], leader=host == leader
        ),
    )


def _ready(phase: Phase, wanted: Mapping[str, Mapping[str, str]], seen: Observed) -> bool:
    """Returns whether other machines can rely on the phase there: everything is installed and has no drift.

    Changed settings can wait, except settings that others read: all of the store's, and those declared by a part.
    """
    records = [seen.roles.get(name) for name in phase.records(seen.roles) if name in wanted]
    if phase.name == STORE:
        return not work_of(phase, wanted, seen)
    return all(record is not None and not record.drift for record in records) and not _gives_other(phase, wanted, seen)


def _gives_other(phase: Phase, wanted: Mapping[str, Mapping[str, str]], seen: Observed, *, leader: bool = True) -> bool:
    """Whether other machines read changed settings from there. leader: of a part that has one it alone gives."""
    return any(
        name in had and had[name] != wanted[part.name].get(name)
        for part in phase.parts
        if (leader or not part.leader_variables)
        if part.name in wanted and (had := seen.roles.get(part.name, RoleRecord()).settings)
        for name in part.given_to_others
    )


def new_machines(plan: Plan, observed: Mapping[str, Observed]) -> tuple[str, ...]:
    """The hosts with playbook work on which no role has ever succeeded."""
    touched = dict.fromkeys(host for step in plan.steps if isinstance(step.action, Playbook) for host in step.names)
    return tuple(host for host in touched if host in observed and not observed[host].roles)


def _planned(
    phase: Phase,
    site: Site,
    inventory: Inventory,
    observed: Mapping[str, Observed],
    limit: Collection[str],
    *,
    forced: bool,
) -> Step | None:
    steps = []
    for machine in phase.machines(site):
        host = machine.hostname
        # Nobody knows what this machine needs. The plan names it as unreachable.
        if host not in observed:
            continue
        wanted = inventory.settings_of(host)
        is_forced = forced and (not limit or host in limit)
        work = work_of(phase, wanted, observed[host])
        found = _reasons(work) or (("asked for",) if is_forced else ())
        if found:
            variables = inventory.variables_of(host)
            roles = phase.records(observed[host].roles)
            touched = effects(roles, wanted, observed[host])
            hit = impact(roles, touched, variables, observed[host])
            steps.append(HostStep(host, found, touched, hit, () if is_forced else phase.roles_after(work)))
    if not steps:
        return None
    return Step(phase.name, phase.title, tuple(steps), Playbook(phase.playbook), phase.needs)


def _reasons(work: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Each once."""
    return tuple(dict.fromkeys(reason for each in work.values() for reason in each))


def work_of(phase: Phase, wanted: Mapping[str, Mapping[str, str]], seen: Observed) -> dict[str, list[str]]:
    """Returns record -> reasons for its role's work on a machine. Roles without work are omitted."""
    names = [name for name in phase.records(seen.roles) if not _left_to_another(name, wanted)]
    every = {name: _record_reasons(name, wanted, seen.roles.get(name)) for name in names}
    found = {name: why for name, why in every.items() if why}
    # Records do not prove membership: they stay on a machine that was reset by hand.
    if "worker" in phase.roles and not seen.kubernetes.node and not found:
        return {"worker": ["the machine is not a member of the cluster"]}
    return found


def _left_to_another(name: str, wanted: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether it is an add-on's record of a time when this control plane was the first one.

    The first one applies all add-ons, and every site has some: where none is wanted it is not this machine.
    """
    return name.startswith(RECORD_PREFIX) and not any(other.startswith(RECORD_PREFIX) for other in wanted)


def _record_reasons(name: str, wanted: Mapping[str, Mapping[str, str]], record: RoleRecord | None) -> list[str]:
    if record is None:
        return [f"{name} is not installed"] if name in wanted else []
    # A record without settings is that of a part that was removed already.
    if record.settings and name not in wanted:
        return [f"the site no longer asks for {name}"]
    addon = name if name.startswith(RECORD_PREFIX) else ""
    return [*changed_settings(wanted.get(name, {}), record.settings, addon), *record.drift]


def differing(wanted: Mapping[str, str], ran_with: Mapping[str, str]) -> list[str]:
    """Returns the names of the settings that have another digest than in the last run. "role": of its code."""
    return [name for name in sorted(wanted) if wanted[name] != ran_with.get(name)]


def changed_settings(wanted: Mapping[str, str], ran_with: Mapping[str, str], addon: str = "") -> list[str]:
    """Returns the differences between a role's settings and its last run. addon: owner of the settings, if any."""
    names = differing(wanted, ran_with)
    found = [name for name in names if name != "role"]
    if found:
        return [f"settings{f' of {addon}' if addon else ''} changed: {', '.join(found)}"]
    return [f"{addon or 'the role'} is different in this version of pai-install"] if names else []
