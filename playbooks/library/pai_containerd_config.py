#!/usr/bin/python
"""Ansible module: the containerd configuration of a machine, in the version of the containerd it has."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_containerd_config
short_description: Read containerd's configuration, migrated to the installed version
description:
  - Returns the text of the configuration file; one of an older version is migrated by containerd itself.
  - Changes nothing.
options:
  path: {description: The configuration file., type: path, default: /etc/containerd/config.toml}
  containerd: {description: The containerd to ask., type: path, default: /usr/local/bin/containerd}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Read the configuration
  pai_containerd_config:
  register: __config
"""
RETURN = r"""
text: {description: TOML in the current version; empty without a file., type: str, returned: always}
version: {description: Version of the configuration format., type: int, returned: always}
migrated: {description: Whether the file was of an older version., type: bool, returned: always}
"""

import os
import re

from ansible.module_utils.basic import AnsibleModule


def format_version(text: str) -> int:
    """The `version = N` of a configuration; 1 when it says none, as containerd takes it."""
    found = re.search(r"^version\s*=\s*(\d+)", text, re.MULTILINE)
    return int(found.group(1)) if found else 1


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "default": "/etc/containerd/config.toml"},
            "containerd": {"type": "path", "default": "/usr/local/bin/containerd"},
        },
        supports_check_mode=True,
    )
    path, containerd = module.params["path"], module.params["containerd"]
    text = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as handle:
            text = handle.read()
    if not os.path.exists(containerd) and module.check_mode:
        # A plan for a machine that has no containerd yet: show the change as far as it can be known.
        module.exit_json(changed=False, text=text, version=max(format_version(text), 3), migrated=False)
    version = format_version(module.run_command([containerd, "config", "default"], check_rc=True)[1])
    migrated = bool(text.strip()) and format_version(text) < version
    if migrated:
        text = module.run_command([containerd, "--config", path, "config", "migrate"], check_rc=True)[1]
    module.exit_json(changed=False, text=text, version=version, migrated=migrated)


if __name__ == "__main__":
    main()
