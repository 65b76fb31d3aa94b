#!/usr/bin/python
"""Ansible module: record the state that a role manages on a machine, so that drift can be detected."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_record
short_description: Record the managed state of a role on the machine
description:
  - Writes what the modules of a role returned as I(managed), with digests of the settings the role ran with.
  - pai_facts reads the record to find drift; a record alone never proves that a machine is as it should be.
  - Makes the files in I(managed) and their folders root's again, which counts as a change; writing the record does not.
  - In a playbook, the action of the same name gives I(role) and I(settings).
options:
  role: {description: Name of the role; that of the task's own role unless given., type: str, default: ""}
  settings:
    description:
      - "Name of each setting -> digest of its value; the role's part of the variable C(pai_settings) unless given."
    type: dict
    default: {}
  managed: {description: Expectations., type: list, elements: raw, required: true}
  notes: {description: "What a later run wants to know of this one: word -> text, no secrets.", type: dict, default: {}}
  packages: {description: Debian packages that stay installed., type: list, elements: str, default: []}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Record the managed state
  pai_record:
    managed: ["{{ __base_kernel.managed }}", "{{ __base_files.managed }}"]
"""
RETURN = r"""
path: {description: The record., type: str, returned: always}
given_back: {description: Files and folders that became root's again., type: list, elements: str, returned: always}
"""

import json
import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_managed import ROLES_DIR, write_record
from ansible.module_utils.pai_ownership import folders, give_back


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


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "role": {"type": "str", "default": ""},
            "settings": {"type": "dict", "default": {}},
            "managed": {"type": "list", "elements": "raw", "required": True},
            "notes": {"type": "dict", "default": {}},
            "packages": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    if not module.params["role"]:
        module.fail_json(msg="pai_record needs the name of a role")
    path = os.path.join(ROLES_DIR, module.params["role"] + ".json")
    expected = flat(module.params["managed"])
    expected += folders([*expected, {"kind": "file", "path": path}])
    expected += [{"kind": "package", "name": name} for name in module.params["packages"]]
    given_back = give_back(expected, check=module.check_mode)
    if not module.check_mode:
        write_record(module.params["role"], module.params["settings"], expected, module.params["notes"])
    module.exit_json(changed=bool(given_back), path=path, given_back=given_back)


if __name__ == "__main__":
    main()
