"""Add-ons of a plan: which are of virtual clusters, which come before them, why each has work. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from pai_install.parts.addon import RECORD_PREFIX, AddonPart
from pai_install.parts.registry import PARTS
from pai_install.plan.model import HostStep, Playbook, Step
from pai_install.plan.observed import Observed
from pai_install.plan.phases import PHASES
from pai_install.plan.planner import differing, work_of
from pai_install.schedulers.registry import backend_of
from pai_install.scheduling.model import Backend

PHASE = "addons"
# the phase of add-ons before workers join
NETWORK = "network"
# add-ons that no other part needs: they measure
_MEASURING = frozenset({"metrics_server"})
# values of other add-ons that follow from the virtual clusters: policies and limits of pods outside their queues
_FOLLOWS: Mapping[str, frozenset[str]] = {"groups": frozenset({"policies", "quotas"})}
# the part of the phase that renders and applies them
_ROLE = "cluster_addons"


def addons_of_scheduler(name: Backend) -> tuple[str, ...]:
    """The scheduler itself and the objects of its virtual clusters."""
    return backend_of(name).addons


def addons_before(names: Collection[str]) -> frozenset[str]:
    """The other add-ons that they are applied after."""
    parts = [part for part in PARTS if isinstance(part, AddonPart) and part.addon in names]
    return frozenset(other for part in parts for other in part.definition.after) - {*names}


def addons_following(wanted: Mapping[str, Mapping[str, str]], seen: Observed) -> frozenset[str]:
    """Returns the other add-ons that differ only in values that follow from the virtual clusters.

    wanted: role -> its settings.
    """
    found = set()
    for addon, names in _FOLLOWS.items():
        record = seen.roles.get(RECORD_PREFIX + addon)
        # A change by hand does not follow from the virtual clusters.
        if record is None or record.drift:
            continue
        changed = differing(wanted.get(RECORD_PREFIX + addon, {}), record.settings)
        if changed and names.issuperset(changed):
            found.add(addon)
    return frozenset(found)


def steps_of_addons(steps: Sequence[Step], names: Collection[str], work: Mapping[str, Sequence[str]]) -> Iterator[Step]:
    """Yields the step of the add-ons' phase, limited to these add-ons with work. work: add-on -> reasons."""
    changed = [name for name in names if work.get(name)]
    reasons = tuple(dict.fromkeys(reason for name in names for reason in work.get(name, ())))
    for step in steps if reasons else ():
        if step.name == PHASE:
            hosts = tuple(HostStep(host.host, reasons, roles=(_ROLE,)) for host in step.hosts)
            yield replace(step, hosts=hosts, action=Playbook(f"{PHASE}.yml", {f"{_ROLE}_only": changed}))


def measures_only(wanted: Mapping[str, Mapping[str, str]], seen: Observed) -> bool:
    """Whether the work of the phase `network` concerns only add-ons that no other part needs."""
    return work_of_addons(wanted, seen, NETWORK).keys() <= _MEASURING


def work_of_addons(wanted: Mapping[str, Mapping[str, str]], seen: Observed, name: str = PHASE) -> dict[str, list[str]]:
    """Add-on -> why it has work. wanted: role -> its settings. name: of the phase."""
    phase = next(phase for phase in PHASES if phase.name == name)
    found = work_of(phase, wanted, seen)
    return {name.removeprefix(RECORD_PREFIX): why for name, why in found.items() if name.startswith(RECORD_PREFIX)}
