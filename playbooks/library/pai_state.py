#!/usr/bin/python
"""Ansible module: files and units of a role in their state, and its record, in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_state
short_description: Bring the files and units of a role to their state, and record the managed state
description:
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
  packages: {description: Debian packages that stay installed., type: list, elements: str, default: []}
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
changed_paths: {description: Files that were changed., type: list, elements: str, returned: always}
"""

import json
import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_file_set import FILE_OPTIONS, FileSet
from ansible.module_utils.pai_managed import ROLES_DIR, write_record
from ansible.module_utils.pai_ownership import folders, restore_ownership
from ansible.module_utils.pai_units import UNIT_OPTIONS, UnitSet


def flat(values: Any) -> list[dict[str, Any]]:
    """Flattens a list of lists. The last expectation on an object wins."""
    found: dict[str, dict[str, Any]] = {}

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            key = {name: value[name] for name in ("kind", "path", "name", "marker", "regexp") if name in value}
            found[json.dumps(key, sort_keys=True)] = value
        else:
            for entry in value:
                walk(entry)

    walk(values)
    return list(found.values())


def read_files(units: list[dict[str, Any]], paths: list[str]) -> None:
    """Lets each unit that starts at boot or now restart for these files, too."""
    for unit in units:
        if unit["enabled"] or unit["started"]:
            unit["restart_if_newer"] = [*paths, *unit["restart_if_newer"]]


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "role": {"type": "str", "default": ""},
            "settings": {"type": "dict", "default": {}},
            **FILE_OPTIONS,
            "files": {**FILE_OPTIONS["files"], "default": []},
            **UNIT_OPTIONS,
            "units": {**UNIT_OPTIONS["units"], "default": []},
            "managed": {"type": "list", "elements": "raw", "default": []},
            "notes": {"type": "dict", "default": {}},
            "packages": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    role = module.params["role"]
    if not role:
        module.fail_json(msg="pai_state needs the name of a role")
    files = FileSet(module)
    units = UnitSet(module, files.backups)
    read_files(module.params["units"], files.paths)
    units.stop_all()
    files.apply_all()
    units.apply_all()
    path = os.path.join(ROLES_DIR, role + ".json")
    expected = flat([module.params["managed"], files.managed, units.managed])
    expected += folders([*expected, {"kind": "file", "path": path}])
    expected += [{"kind": "package", "name": name} for name in module.params["packages"]]
    given_back = restore_ownership(expected, check=module.check_mode)
    if not module.check_mode:
        write_record(role, module.params["settings"], expected, module.params["notes"])
    module.exit_json(
        changed=bool(files.changed or units.actions or given_back),
        path=path,
        given_back=given_back,
        actions=units.actions,
        **files.result(),
    )


if __name__ == "__main__":
    main()
