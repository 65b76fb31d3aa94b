#!/usr/bin/python
"""Ansible module: systemd units that come up, or the old configuration comes back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_service
short_description: Enable, start, restart or reload units, and roll back files when one does not come up
description:
  - Reloads systemd when a unit file is newer than what systemd knows, or stands before the one it knows.
  - After a start or restart the unit must be active and its check must pass; otherwise the files named in
    I(rollback) are restored, the unit is restarted with them, and the task fails with the unit's last log lines.
options:
  units:
    description: The units, in order.
    type: list
    elements: dict
    required: true
    suboptions:
      name: {description: Unit name with suffix., type: str, required: true}
      enabled: {description: Whether it starts at boot., type: bool, default: true}
      started: {description: Whether it has to run now., type: bool, default: true}
      restart: {description: Whether to restart it even when it runs., type: bool, default: false}
      restart_if_newer:
        description:
          - Files that the unit reads when it starts, such as I(paths) of pai_files; it is restarted when one of them is
            younger than its start.
          - So a run that was interrupted between the file and the restart is made good by the next one.
        type: list
        elements: path
        default: []
      reload_if_newer:
        description:
          - Files that the unit reads again on a reload; it is reloaded when one of them is younger than its last start
            or reload, and is not restarted for another reason.
        type: list
        elements: path
        default: []
      check: {description: Command that succeeds once the service answers., type: str}
      check_output: {description: Regular expression that the command's output must match., type: str, default: ""}
  stopped: {description: Units to stop and disable where they exist., type: list, elements: str, default: []}
  rollback: {description: "File -> its old copy; an empty copy means the file was not there.", type: dict, default: {}}
  timeout: {description: Seconds until a unit must be up., type: int, default: 60}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Run the daemon
  pai_service:
    units: [{name: docker.service, restart_if_newer: "{{ __files.paths }}", check: docker version}]
    rollback: "{{ __files.backups }}"
"""
RETURN = r"""
actions: {description: What was done., type: list, elements: str, returned: always}
managed: {description: Expectations for pai_record., type: list, elements: dict, returned: always}
"""

import os
import re
import time
from collections.abc import Callable
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_managed import newer_than_reload, newer_than_start, unit_state
from ansible.module_utils.pai_origins import note
from ansible.module_utils.pai_rollback import last_log_lines, roll_back

ADMIN_UNITS = "/etc/systemd/system"
ENABLED = ("enabled", "enabled-runtime", "static", "alias", "generated", "indirect")


def outdated(name: str, state: dict[str, str]) -> bool:
    """Whether systemd has another unit in mind than the one on the disk.

    It notices by itself when a file that it has read is newer, not when one appeared in a place that comes first.
    """
    ours = os.path.join(ADMIN_UNITS, name)
    shadowed = os.path.exists(ours) and state.get("FragmentPath") != ours
    return state.get("NeedDaemonReload") == "yes" or shadowed


class Services:
    """Changes units to their desired state and records the changes."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.actions: list[str] = []

    def systemctl(self, *words: str) -> tuple[int, str]:
        """Runs systemctl and returns status and output."""
        status, out, err = self.module.run_command(["systemctl", *words])
        return status, (err or out).strip()

    def act(self, what: str) -> bool:
        """Records an action and returns whether to perform it."""
        self.actions.append(what)
        return not self.module.check_mode

    def stop(self, name: str) -> None:
        """Stops and disables a unit that exists."""
        state = unit_state(name)
        if state.get("LoadState") != "loaded":
            return
        running = state.get("ActiveState") in ("active", "activating", "reloading")
        if (running or state.get("UnitFileState") == "enabled") and self.act(f"stopped and disabled {name}"):
            note("stopped", name, True)
            self.systemctl("disable", "--now", name)

    def apply(self, unit: dict[str, Any]) -> None:
        """Brings one unit to its state."""
        name = unit["name"]
        state = unit_state(name)
        if outdated(name, state) and not self.module.check_mode:
            self.systemctl("daemon-reload")
            state = unit_state(name)
        if state.get("LoadState") == "masked" and self.act(f"unmasked {name}"):
            self.systemctl("unmask", name)
        if unit["enabled"] and state.get("UnitFileState") not in ENABLED and self.act(f"enabled {name}"):
            self.must("enable", name)
        if not unit["started"]:
            return
        if state.get("ActiveState") != "active":
            if self.act(f"started {name}"):
                self.up(unit, "restart")
            return
        stale = newer_than_start(unit["restart_if_newer"], state)
        if unit["restart"] or stale:
            if self.act(f"restarted {name}"):
                self.up(unit, "restart")
        elif newer_than_reload(unit["reload_if_newer"], state) and self.act(f"reloaded {name}"):
            self.up(unit, "reload")

    def must(self, *words: str) -> None:
        """Runs systemctl. Fails the task on an error."""
        status, said = self.systemctl(*words)
        if status != 0:
            self.module.fail_json(msg=f"systemctl {' '.join(words)} failed: {said}", actions=self.actions)

    def up(self, unit: dict[str, Any], verb: str) -> None:
        """Starts a unit and waits until it answers."""
        # A unit that failed too often is refused a start until its counter is reset.
        self.systemctl("reset-failed", unit["name"])
        status, said = self.systemctl(verb, unit["name"])
        if status != 0 or not self.answers(unit):
            self.fail(unit, said)

    def answers(self, unit: dict[str, Any]) -> bool:
        """Whether the unit is active and its check passes before the time is up."""
        return self.comes_true(
            lambda: (
                unit_state(unit["name"]).get("ActiveState") == "active"
                and self.passes(unit["check"], unit["check_output"])
            )
        )

    def comes_true(self, condition: Callable[[], bool]) -> bool:
        """Whether the condition holds before the time is up."""
        deadline = time.monotonic() + self.module.params["timeout"]
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.3)
        return True

    def passes(self, check: str | None, output: str) -> bool:
        """Whether a check passes, where there is one."""
        if not check:
            return True
        status, out, _err = self.module.run_command(check)
        return status == 0 and bool(re.search(output, out, re.MULTILINE))

    def fail(self, unit: dict[str, Any], said: str) -> None:
        """Takes the log lines, brings the old files back, fails the task."""
        name = unit["name"]
        log = last_log_lines(self.module, name)
        restored = roll_back(self.module.params["rollback"])
        if restored:
            self.systemctl("daemon-reload")
            self.systemctl("reset-failed", name)
            self.systemctl("restart", name)
            restored_words = f"; restored {', '.join(restored)} and restarted it"
        else:
            restored_words = ""
        evidence = {"systemctl": said.splitlines(), name: log}
        self.module.fail_json(msg=f"{name} did not come up{restored_words}", evidence=evidence)


def main() -> None:
    """Runs the module."""
    unit = {
        "name": {"type": "str", "required": True},
        "enabled": {"type": "bool", "default": True},
        "started": {"type": "bool", "default": True},
        "restart": {"type": "bool", "default": False},
        "restart_if_newer": {"type": "list", "elements": "path", "default": []},
        "reload_if_newer": {"type": "list", "elements": "path", "default": []},
        "check": {"type": "str"},
        "check_output": {"type": "str", "default": ""},
    }
    module = AnsibleModule(
        argument_spec={
            "units": {"type": "list", "elements": "dict", "required": True, "options": unit},
            "stopped": {"type": "list", "elements": "str", "default": []},
            "rollback": {"type": "dict", "default": {}},
            "timeout": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    services = Services(module)
    for name in module.params["stopped"]:
        services.stop(name)
    for entry in module.params["units"]:
        services.apply(entry)
    managed = [
        {
            "kind": "unit",
            "name": entry["name"],
            "enabled": entry["enabled"],
            "active": entry["started"],
            "reads": entry["restart_if_newer"],
        }
        for entry in module.params["units"]
    ]
    module.exit_json(changed=bool(services.actions), actions=services.actions, managed=managed)


if __name__ == "__main__":
    main()
