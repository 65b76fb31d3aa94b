"""The record of a role: the settings of its last run, and the objects it manages. pai_facts finds drift by it."""

from __future__ import annotations

import json
import os
from typing import Any

from ansible.module_utils import pai_managed
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_ownership import folders, restore_ownership

# the options of a module that writes a record, for its argument_spec
RECORD_OPTIONS: dict[str, dict[str, Any]] = {
    "role": {"type": "str", "default": ""},
    "settings": {"type": "dict", "default": {}},
    "managed": {"type": "list", "elements": "raw", "default": []},
    "notes": {"type": "dict", "default": {}},
    "packages": {"type": "list", "elements": "str", "default": []},
}


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


def write_record(module: AnsibleModule, managed: list[dict[str, Any]]) -> dict[str, Any]:
    """Writes the record of `role` from RECORD_OPTIONS and `managed`, the expectations of the module itself.

    Restores root as owner of the recorded files and their folders. Returns `path` of the record and `given_back`.
    Without a role or in check mode, it writes nothing.
    """
    params = module.params
    if not params["role"]:
        return {"path": "", "given_back": []}
    path = os.path.join(pai_managed.ROLES_DIR, params["role"] + ".json")
    expected = flat([params["managed"], managed])
    # Whoever may write a folder may replace a file of root in it.
    expected += folders([*expected, {"kind": "file", "path": path}])
    expected += [{"kind": "package", "name": name} for name in params["packages"]]
    given_back = restore_ownership(expected, check=module.check_mode)
    if not module.check_mode:
        pai_managed.write_record(params["role"], params["settings"], expected, params["notes"])
    return {"path": path, "given_back": given_back}
