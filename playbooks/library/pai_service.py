#!/usr/bin/python
"""Ansible module: systemd units that come up, or the old configuration comes back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_service
short_description: Enable, start, restart or reload units, and roll back files when one does not come up
description:
  - Reloads systemd if a unit file is newer than the loaded one, or takes precedence over it.
  - After a start or restart, the unit must be active and its check must pass. Otherwise, the files in I(rollback) are
    restored, the unit restarts, and the task fails with the last log lines.
options:
  units:
    description: The units, in order.
    type: list
    elements: dict
    required: true
    suboptions:
      name: {description: Unit name with suffix., type: str, required: true}
      state:
        description: Whether the unit is wanted. A unit that is not is stopped and disabled before all others start.
        type: str
        choices: [present, absent]
        default: present
      enabled: {description: Whether it starts at boot., type: bool, default: true}
      started: {description: Whether it has to run now., type: bool, default: true}
      restart: {description: Whether to restart it even when it runs., type: bool, default: false}
      restart_if_newer:
        description:
          - Files that the unit reads at its start, such as I(paths) of pai_files. It restarts if one of them is
            younger than its start.
          - So a run that was interrupted between the file and the restart is made good by the next one.
        type: list
        elements: path
        default: []
      reload_if_newer:
        description:
          - Files that the unit reads on a reload. It is reloaded if one of them is younger than its last start or
            reload, and is not restarted for another reason.
        type: list
        elements: path
        default: []
      check: {description: Command that succeeds once the service answers., type: str}
      check_output: {description: Regular expression that the command's output must match., type: str, default: ""}
  stopped: {description: Units to stop and disable where they exist., type: list, elements: str, default: []}
  rollback: {description: "File -> its old copy. Empty if the file did not exist.", type: dict, default: {}}
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
managed: {description: Expectations for pai_state., type: list, elements: dict, returned: always}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_units import UNIT_OPTIONS, UnitSet


def main() -> None:
    """Runs the module."""
    units = {**UNIT_OPTIONS["units"], "required": True}
    options = {**UNIT_OPTIONS, "units": units, "rollback": {"type": "dict", "default": {}}}
    module = AnsibleModule(argument_spec=options, supports_check_mode=True)
    services = UnitSet(module, module.params["rollback"])
    services.stop_all()
    services.apply_all()
    module.exit_json(changed=bool(services.actions), actions=services.actions, managed=services.managed)


if __name__ == "__main__":
    main()
