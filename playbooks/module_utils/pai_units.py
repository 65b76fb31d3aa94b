"""systemd units that one call starts, restarts, reloads, and stops.

The options of a unit are those of `units` in the module pai_service.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_managed import newer_than_reload, newer_than_start, unit_state
from ansible.module_utils.pai_origins import note
from ansible.module_utils.pai_rollback import last_log_lines, roll_back

_UNIT = {
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "enabled": {"type": "bool", "default": True},
    "started": {"type": "bool", "default": True},
    "restart": {"type": "bool", "default": False},
    "restart_if_newer": {"type": "list", "elements": "path", "default": []},
    "reload_if_newer": {"type": "list", "elements": "path", "default": []},
    "check": {"type": "str"},
    "check_output": {"type": "str", "default": ""},
}
# the options of a module that manages units, for its argument_spec
UNIT_OPTIONS: dict[str, dict[str, Any]] = {
    "units": {"type": "list", "elements": "dict", "options": _UNIT},
    "stopped": {"type": "list", "elements": "str", "default": []},
    "timeout": {"type": "int", "default": 60},
}
ADMIN_UNITS = "/etc/systemd/system"
ENABLED = ("enabled", "enabled-runtime", "static", "alias", "generated", "indirect")


def outdated(name: str, state: dict[str, str]) -> bool:
    """Whether systemd has another unit in mind than the one on the disk.

    It notices by itself when a file that it has read is newer, not when one appeared in a place that comes first.
    """
    path = os.path.join(ADMIN_UNITS, name)
    # A unit of a package in /usr/lib is read until a daemon-reload finds ours in /etc.
    shadowed = os.path.exists(path) and state.get("FragmentPath") != path
    return state.get("NeedDaemonReload") == "yes" or shadowed


class UnitSet:
    """Brings the units of a module to their state and keeps what was done.

    backups: file -> its old copy, restored when a unit does not come up. An empty copy means a new file.
    """

    def __init__(self, module: AnsibleModule, backups: dict[str, str]) -> None:
        self.module = module
        self.backups = backups
        self.actions: list[str] = []

    def systemctl(self, *words: str) -> tuple[int, str]:
        """Runs systemctl and returns status and output."""
        status, out, err = self.module.run_command(["systemctl", *words])
        return status, (err or out).strip()

    def act(self, what: str) -> bool:
        """Records an action and returns whether to perform it."""
        self.actions.append(what)
        return not self.module.check_mode

    @property
    def managed(self) -> list[dict[str, Any]]:
        """Returns the expectations for drift detection."""
        return [
            {
                "kind": "unit",
                "name": unit["name"],
                "enabled": unit["enabled"],
                "active": unit["started"],
                "reads": unit["restart_if_newer"],
            }
            for unit in self.module.params["units"]
            if unit["state"] == "present"
        ]

    def stop_all(self) -> None:
        """Stops and disables the units that must not run. Call it before their files are removed."""
        absent = [unit["name"] for unit in self.module.params["units"] if unit["state"] == "absent"]
        for name in [*self.module.params["stopped"], *absent]:
            self.stop(name)

    def apply_all(self) -> None:
        """Brings the other units to their state, in order."""
        for unit in self.module.params["units"]:
            if unit["state"] == "present":
                self.apply(unit)

    def stop(self, name: str) -> None:
        """Stops and disables a unit that exists."""
        state = unit_state(name)
        # systemctl fails for a unit that no package brought, such as ntpsec on most machines.
        if state.get("LoadState") != "loaded":
            return
        running = state.get("ActiveState") in ("active", "activating", "reloading")
        if (running or state.get("UnitFileState") == "enabled") and self.act(f"stopped and disabled {name}"):
            # A reset starts it again.
            note("stopped", name, True)
            self.systemctl("disable", "--now", name)

    def apply(self, unit: dict[str, Any]) -> None:
        """Brings one unit to its state."""
        name = unit["name"]
        state = unit_state(name)
        if outdated(name, state) and not self.module.check_mode:
            self.systemctl("daemon-reload")
            state = unit_state(name)
        # systemctl refuses to enable or start a masked unit.
        if state.get("LoadState") == "masked" and self.act(f"unmasked {name}"):
            self.systemctl("unmask", name)
        if unit["enabled"] and state.get("UnitFileState") not in ENABLED and self.act(f"enabled {name}"):
            self.must("enable", name)
        # A unit that a timer starts, or kubeadm, is enabled only.
        if not unit["started"]:
            return
        if state.get("ActiveState") != "active":
            if self.act(f"started {name}"):
                self.up(unit, "restart")
            return
        # Times in place of a flag: if a run was killed between file and restart, the next run still sees it.
        stale = newer_than_start(unit["restart_if_newer"], state)
        if unit["restart"] or stale:
            if self.act(f"restarted {name}"):
                self.up(unit, "restart")
        elif newer_than_reload(unit["reload_if_newer"], state) and self.act(f"reloaded {name}"):
            self.up(unit, "reload")

    def must(self, *words: str) -> None:
        """Runs systemctl. Fails the task on an error."""
        status, output = self.systemctl(*words)
        if status != 0:
            self.module.fail_json(msg=f"systemctl {' '.join(words)} failed: {output}", actions=self.actions)

    def up(self, unit: dict[str, Any], verb: str) -> None:
        """Starts a unit and waits until it answers."""
        # A unit that failed too often is refused a start until its counter is reset.
        self.systemctl("reset-failed", unit["name"])
        status, output = self.systemctl(verb, unit["name"])
        if status != 0 or not self.answers(unit):
            self.fail(unit, output)

    def answers(self, unit: dict[str, Any]) -> bool:
        """Whether the unit is active and its check passes before the time is up."""
        return self.becomes_true(
            lambda: (
                # systemd calls a simple service active before it listens. So a check may ask the program itself.
                unit_state(unit["name"]).get("ActiveState") == "active"
                and self.passes(unit["check"], unit["check_output"])
            )
        )

    def becomes_true(self, condition: Callable[[], bool]) -> bool:
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

    def fail(self, unit: dict[str, Any], output: str) -> None:
        """Takes the log lines, brings the old files back, fails the task."""
        name = unit["name"]
        # The log comes first, because the restart with the old files adds lines of its own.
        log = last_log_lines(self.module, name)
        restored = roll_back(self.backups)
        if restored:
            self.systemctl("daemon-reload")
            self.systemctl("reset-failed", name)
            self.systemctl("restart", name)
            restored_words = f"; restored {', '.join(restored)} and restarted it"
        else:
            restored_words = ""
        evidence = {"systemctl": output.splitlines(), name: log}
        self.module.fail_json(msg=f"{name} did not come up{restored_words}", evidence=evidence)
