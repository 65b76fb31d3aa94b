"""Action of pai_state: adds the role of the task and the settings it runs with, and installs missing packages."""

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


# A role starts the services of its packages itself, with its own files.
# After a failed update, lists that are not there count as fresh: role base installs them first.
APT = {
    "install_recommends": False,
    "update_cache": True,
    "cache_valid_time": 86400,
    "lock_timeout": 300,
    # 101 forbids the scripts of packages to start services, as invoke-rc.d defines it.
    "policy_rc_d": 101,
}
# needrestart would restart services of the administrator that no plan names
QUIET = {"NEEDRESTART_SUSPEND": "1"}


def flat(diffs: list[Any]) -> list[Any]:
    """Returns one list of differences. A module gives one difference or a list."""
    return [part for diff in diffs for part in (diff if isinstance(diff, list) else [diff])]


class ActionModule(ActionBase):
    """Runs the module with its arguments completed."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The action."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        try:
            wanted = arguments(self._task.args, task_vars or {})
        except ValueError as error:
            raise AnsibleActionFail(str(error)) from error
        # The module looks first: on most runs nothing is missing, and apt would cost seconds.
        answer = self._execute_module("pai_state", wanted, task_vars=task_vars)
        if missing := answer.get("missing"):
            answer = self._install(missing, wanted, task_vars)
        result.update(answer)
        return result

    def _install(self, packages: list[str], wanted: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Installs the packages, then runs the module again. Without them, the module changed nothing."""
        self._task.environment = [*(self._task.environment or []), QUIET]
        apt = self._execute_module("ansible.builtin.apt", {**APT, "name": packages}, task_vars=task_vars)
        if apt.get("failed"):
            return dict(apt)
        state = self._execute_module("pai_state", {**wanted, "installed": packages}, task_vars=task_vars)
        diffs = [part for part in (apt.get("diff"), state.get("diff")) if part]
        return {**state, "changed": True, **({"diff": flat(diffs)} if diffs else {})}
