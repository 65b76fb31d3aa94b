"""How machines are cleaned: one playbook, for one that leaves and for a whole cluster alike. Pure."""

from __future__ import annotations

from pai_install.parts.machine_reset import PLAYBOOK, MachineResetVariables
from pai_install.plan.model import Playbook


def reset(*, data: bool = False) -> Playbook:
    """What takes everything of pai-install off a step's machines. data: images and other data as well."""
    return Playbook(PLAYBOOK, MachineResetVariables(data=data).variables())
