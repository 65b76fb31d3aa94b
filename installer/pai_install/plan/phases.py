"""The phases of an installation, derived from the parts: a phase runs the parts that name it. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pai_install.errors import ExitCode, PaiError
from pai_install.parts.addon import RECORD_PREFIX, AddonPart
from pai_install.parts.part import Part
from pai_install.parts.registry import PARTS
from pai_install.site import Machine, Site

TITLES: Mapping[str, str] = {
    "base": "Prepare the operating system",
    "time": "Synchronise the clocks",
    "storage": "Serve and mount storages",
    "components": "Fill the component store",
    "runtime": "Install the container runtimes",
    "control-plane": "Create the control plane",
    "network": "Install the pod network",
    "workers": "Join the workers",
    "labels": "Label the nodes",
    "addons": "Apply the add-ons",
    "registries": "Point the machines at their registries",
    "verify": "Verify the cluster",
}


@dataclass(frozen=True, slots=True)
class Phase:
    """One named step with one playbook, which runs the roles of its parts.

    needs: phases that must have succeeded on at least one of their machines before this one may start.
    """

    name: str
    title: str
    parts: tuple[Part, ...]
    needs: tuple[str, ...] = ()

    @property
    def playbook(self) -> str:
        """Its file below playbooks/."""
        return f"{self.name}.yml"

    @property
    def roles(self) -> tuple[str, ...]:
        """Its roles, each once."""
        return tuple(dict.fromkeys(part.role for part in self.parts))

    def roles_after(self, changed: Collection[str]) -> tuple[str, ...]:
        """Returns the roles of these records and their dependents, in execution order."""
        run = {part.name for part in self.parts if part.name in changed}
        for _part in self.parts:  # as many rounds as a chain can have links
            run |= {part.name for part in self.parts if run.intersection(part.after)}
        return tuple(dict.fromkeys(part.role for part in self.parts if part.name in run))

    def machines(self, site: Site) -> tuple[Machine, ...]:
        """Where one of its parts may have work."""
        return tuple(
            machine for machine in site.present_machines if any(part.applies(site, machine) for part in self.parts)
        )

    def records(self, seen: Collection[str]) -> tuple[str, ...]:
        """Returns the names of records that determine the work. seen: the records of a machine.

        It includes records of add-ons that this version no longer has.
        """
        own = [part.name for part in self.parts]
        if self.name != "addons":
            return tuple(own)
        known = {part.name for part in PARTS if isinstance(part, AddonPart)}
        return (*own, *(name for name in seen if name.startswith(RECORD_PREFIX) and name not in known))


def _phase(name: str) -> Phase:
    parts = tuple(part for part in PARTS if part.phase == name)
    phase_of = {part.name: part.phase for part in PARTS}
    needs = dict.fromkeys(phase_of[other] for part in parts for other in part.after if phase_of[other] != name)
    return Phase(name, TITLES[name], parts, tuple(needs))


# Runs after any phase that had work, and alone on `pai-install verify`.
VERIFY = _phase("verify")

PHASES: tuple[Phase, ...] = tuple(_phase(name) for name in TITLES if name != VERIFY.name)

PHASE_NAMES: tuple[str, ...] = tuple(TITLES)


def require_phases(names: Collection[str]) -> None:
    """Raises PaiError for a name that no phase has, with the name that was probably meant."""
    for name in names:
        if name in PHASE_NAMES:
            continue
        near = difflib.get_close_matches(name, PHASE_NAMES, n=1)
        known = f"choose from: {', '.join(PHASE_NAMES)}"
        remedy = f"did you mean {near[0]}?" if near else known
        raise PaiError(f"cannot find phase {name!r}", code="unknown-phase", remedy=remedy, exit_code=ExitCode.USAGE)
