"""The reset of machines: one playbook for a single machine and a whole cluster. Pure."""

from __future__ import annotations

from pai_install.parts.machine_reset import PLAYBOOK, MachineResetVariables
from pai_install.plan.model import Playbook


def reset(*, data: bool = False) -> Playbook:
    """Returns the playbook that removes pai-install's changes from a step's machines. data: images and
    other data too.
    """
    return Playbook(PLAYBOOK, MachineResetVariables(data=data).variables())
