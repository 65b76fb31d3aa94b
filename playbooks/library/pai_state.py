#!/usr/bin/python
"""Ansible module: files and units of a role in their state, and its record, in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_state
short_description: Bring the files and units of a role to their state, and record the managed state
description:
  - Installs I(packages) that are missing, without recommended packages. Their services do not start.
  - Stops the units that are not wanted, writes files, and starts or restarts units, like pai_files and pai_service.
  - A unit restarts when one of I(files) is younger than its start. If it does not come up, their old copies return.
  - Then writes the record of the role. It has the expectations of files, units, and other modules, and digests of the
    settings the role ran with.
  - pai_facts compares the machine with the record to find drift.
  - Restores root as owner of the recorded files and their folders, which is a change. The record is not a change.
  - In a playbook, the action of the same name gives I(role) and I(settings).
options:
  role: {description: Name of the role. Default is the role of the task., type: str, default: ""}
  settings:
    description:
      - "Name of each setting -> digest of its value. Default is the role's part of the variable C(pai_settings)."
    type: dict
    default: {}
  files: {description: As in pai_files., type: list, elements: dict, default: []}
  directory_mode: {description: As in pai_files., type: str, default: "0755"}
  owner: {description: As in pai_files., type: str, default: ""}
  units: {description: As in pai_service., type: list, elements: dict, default: []}
  stopped: {description: As in pai_service., type: list, elements: str, default: []}
  timeout: {description: As in pai_service., type: int, default: 60}
  managed: {description: Expectations of other modules., type: list, elements: raw, default: []}
  notes: {description: "Notes for later runs, word -> text, without secrets.", type: dict, default: {}}
  packages: {description: Debian packages that are installed and stay so., type: list, elements: str, default: []}
  installed: {description: Packages that the action just installed., type: list, elements: str, default: []}
  unused:
    description: Units of I(packages) that are disabled after the installation. Units of packages from before stay.
    type: list
    elements: str
    default: []
author: [pai-install]
"""
EXAMPLES = r"""
- name: Run the daemon
  pai_state:
    files: [{path: /etc/example.conf, content: "a = 1\n", mode: "0644"}]
    units: [{name: example.service}]
    packages: [example]
"""
RETURN = r"""
path: {description: The record., type: str, returned: always}
given_back: {description: Files and folders that became root's again., type: list, elements: str, returned: always}
actions: {description: Actions on units., type: list, elements: str, returned: always}
missing: {description: Packages that the action must install first., type: list, elements: str, returned: missing}
changed_paths: {description: Files that were changed., type: list, elements: str, returned: always}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_file_set import FILE_OPTIONS, FileSet
from ansible.module_utils.pai_packages import installed
from ansible.module_utils.pai_role_record import RECORD_OPTIONS, write_record
from ansible.module_utils.pai_units import UNIT_OPTIONS, UnitSet


def absent(packages: list[str]) -> list[str]:
    """Returns the packages that are not installed."""
    there = installed() if packages else {}
    return [name for name in packages if name not in there]


def read_files(units: list[dict[str, Any]], paths: list[str]) -> None:
    """Lets each unit that starts at boot or now restart for these files, too."""
    for unit in units:
        if unit["enabled"] or unit["started"]:
            unit["restart_if_newer"] = [*paths, *unit["restart_if_newer"]]


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            **RECORD_OPTIONS,
            **FILE_OPTIONS,
            "files": {**FILE_OPTIONS["files"], "default": []},
            **UNIT_OPTIONS,
            "units": {**UNIT_OPTIONS["units"], "default": []},
            **{name: {"type": "list", "elements": "str", "default": []} for name in ("installed", "unused")},
        },
        supports_check_mode=True,
    )
    if not module.params["role"]:
        module.fail_json(msg="pai_state needs the name of a role")
    new = module.params["installed"]
    if missing := absent([name for name in module.params["packages"] if name not in new]):
        module.exit_json(changed=False, missing=missing)
    if new:
        module.params["stopped"] = [*module.params["stopped"], *module.params["unused"]]
    files = FileSet(module)
    units = UnitSet(module, files.backups)
    read_files(module.params["units"], files.paths)
    units.stop_all()
    files.apply_all()
    units.apply_all()
    record = write_record(module, [*files.managed, *units.managed])
    module.exit_json(
        changed=bool(files.changed or units.actions or record["given_back"]),
        actions=units.actions,
        **record,
        **files.result(),
    )


if __name__ == "__main__":
    main()
