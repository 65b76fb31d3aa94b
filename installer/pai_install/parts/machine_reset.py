"""Removes all parts from a machine. It is no part itself."""

from __future__ import annotations

from pai_install.parts.part import RoleVariables

PLAYBOOK = "reset.yml"


class MachineResetVariables(RoleVariables):
    """data: whether images, Docker's data, the component store's content and storages go as well."""

    role = "machine_reset"
    data: bool = False
