"""Action of pai_state: adds the name of the role that the task belongs to, and the settings the role runs with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase


def arguments(given: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the module arguments: `given`, with defaults for role and settings.

    variables: of the task. `pai_settings` (role -> setting -> digest of its value) comes from the inventory of
    pai-install. Foreign playbooks have none, and their records have no settings. Raises ValueError outside a role.
    """
    role = given.get("role") or variables.get("ansible_role_name")
    if not role:
        raise ValueError("pai_state needs the name of a role: call it in a role, or give `role`")
    settings = given.get("settings") or (variables.get("pai_settings") or {}).get(role) or {}
    return {**given, "role": str(role), "settings": dict(settings)}


class ActionModule(ActionBase):
    """Runs the module with its arguments completed."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The action."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        try:
            wanted = arguments(self._task.args, task_vars or {})
        except ValueError as error:
            raise AnsibleActionFail(str(error)) from error
        result.update(self._execute_module("pai_state", wanted, task_vars=task_vars))
        return result
