#!/usr/bin/python
"""Ansible module: keep what a role left behind, so that drift can be seen."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_record
short_description: Keep the expectations of a role on the machine
description:
  - Writes what the modules of a role returned as I(managed), with digests of the settings the role ran with.
  - The record is where pai_facts looks for drift; it is never taken as a proof that all is well.
  - The record itself never counts as a change.
options:
  role: {description: Name of the role., type: str, required: true}
  settings: {description: "Name of each setting -> digest of its value.", type: dict, default: {}}
  managed: {description: Expectations., type: list, elements: raw, required: true}
  packages: {description: Debian packages that stay installed., type: list, elements: str, default: []}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Keep what this role left behind
  pai_record: {role: base, settings: "{{ pai_settings.base }}", managed: "{{ __base_files.managed }}"}
"""
RETURN = r"""
path: {description: The record., type: str, returned: always}
"""

import json
import os
import tempfile
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_managed import ROLES_DIR


def flat(values: Any) -> list[dict[str, Any]]:
    """A list of lists becomes one list; of two expectations on the same thing the later one counts."""
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
            "role": {"type": "str", "required": True},
            "settings": {"type": "dict", "default": {}},
            "managed": {"type": "list", "elements": "raw", "required": True},
            "packages": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    path = os.path.join(ROLES_DIR, module.params["role"] + ".json")
    if not module.check_mode:
        expected = flat(module.params["managed"])
        expected += [{"kind": "package", "name": name} for name in module.params["packages"]]
        record = {"schema_version": 1, "settings": module.params["settings"], "managed": expected}
        os.makedirs(ROLES_DIR, mode=0o755, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=ROLES_DIR)
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            json.dump(record, handle, indent=1)
            handle.flush()
            os.fsync(handle.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    module.exit_json(changed=False, path=path)


if __name__ == "__main__":
    main()
