#!/usr/bin/python
"""Ansible module: limit the disk space of folders by project quotas of xfs or ext4."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_quota
short_description: Limit folders, by project quotas of xfs or ext4
description:
  - Creates a project with a limit for each folder and its content. New files in the folder belong to the project, too.
  - Fails before anything is changed where a limit is asked for and the file system keeps none.
  - A folder that has a project keeps it. Without a limit, limits of administrators stay, and limits of pai-install
    are removed.
options:
  folders:
    description: The folders. Missing folders are skipped.
    type: list
    elements: dict
    required: true
    suboptions:
      path: {description: The folder., type: path, required: true}
      size: {description: "Limit in bytes. 0 for none.", type: int, required: true}
      each: {description: Whether each folder in it has that limit, instead of itself., type: bool, default: false}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Limit what everybody has, and each user
  pai_quota:
    folders:
      - {path: /share/data, size: 10995116277760}
      - {path: /share/users, size: 549755813888, each: true}
"""
RETURN = r"""
limited: {description: Folders with a changed limit., type: list, elements: str, returned: always}
managed: {description: Expectations for pai_state., type: list, elements: dict, returned: always}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_quota import NONE_KEPT, kept, looked_at, missing, take


def main() -> None:
    """Runs the module."""
    folder = {
        "path": {"type": "path", "required": True},
        "size": {"type": "int", "required": True},
        "each": {"type": "bool", "default": False},
    }
    module = AnsibleModule(
        argument_spec={"folders": {"type": "list", "elements": "dict", "required": True, "options": folder}},
        supports_check_mode=True,
    )
    entries = module.params["folders"]
    wanted = [entry for entry in entries if entry["size"]]
    refused = [NONE_KEPT.format(path=entry["path"]) for entry in wanted if not kept(entry["path"])]
    if refused:
        module.fail_json(msg=refused[0])
    steps = missing([found for entry in entries for found in looked_at(entry["path"], entry["size"], entry["each"])])
    for step in [] if module.check_mode else steps:
        try:
            take(step)
        except OSError as error:
            module.fail_json(msg=f"{step.path} cannot be limited: {error}")
    managed = [{"kind": "quota", **entry} for entry in wanted]
    module.exit_json(changed=bool(steps), limited=[step.path for step in steps], managed=managed)


if __name__ == "__main__":
    main()
