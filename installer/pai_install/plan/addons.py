"""Add-ons of a plan: which are of virtual clusters, which come before them, why each has work. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pai_install.parts.addon import RECORD_PREFIX, AddonPart
from pai_install.parts.registry import PARTS
from pai_install.parts.scheduling import SCHEDULER_ADDONS
from pai_install.plan.observed import Observed
from pai_install.plan.phases import PHASES
from pai_install.plan.planner import work_of

PHASE = "addons"


def addons_of_scheduler(name: str) -> tuple[str, ...]:
    """The scheduler itself and the objects of its virtual clusters."""
    return next(addons for backend, addons in SCHEDULER_ADDONS.items() if backend == name)


def addons_before(names: Collection[str]) -> frozenset[str]:
    """The other add-ons that they are applied after."""
    parts = [part for part in PARTS if isinstance(part, AddonPart) and part.addon in names]
    return frozenset(other for part in parts for other in part.definition.after) - {*names}


def work_of_addons(wanted: Mapping[str, Mapping[str, str]], seen: Observed) -> dict[str, list[str]]:
    """Add-on -> why it has work. wanted: role -> its settings."""
    phase = next(phase for phase in PHASES if phase.name == PHASE)
    found = work_of(phase, wanted, seen)
    return {name.removeprefix(RECORD_PREFIX): why for name, why in found.items() if name.startswith(RECORD_PREFIX)}
