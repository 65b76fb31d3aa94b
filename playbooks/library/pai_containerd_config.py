#!/usr/bin/python
"""Ansible module: the containerd configuration of a machine, in the version of the containerd it has."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_containerd_config
short_description: Read the configurations of containerd and of the NVIDIA toolkit
description:
  - Returns the text of the configuration file. containerd migrates files of older versions.
  - That of the toolkit is returned as it is.
  - Changes nothing.
options:
  path: {description: The configuration file., type: path, default: /etc/containerd/config.toml}
  containerd: {description: The containerd to ask., type: path, default: /usr/local/bin/containerd}
  toolkit:
    description: The toolkit's configuration file.
    type: path
    default: /etc/nvidia-container-runtime/config.toml
author: [pai-install]
"""
EXAMPLES = r"""
- name: Read the configuration
  pai_containerd_config:
  register: __config
"""
RETURN = r"""
text: {description: TOML in the current version. Empty without a file., type: str, returned: always}
version: {description: Version of the configuration format., type: int, returned: always}
toolkit: {description: TOML of the toolkit. Empty without a file., type: str, returned: always}
migrated: {description: Whether the file was of an older version., type: bool, returned: always}
spec: {description: Default settings of containers (OCI)., type: str, returned: always}
root: {description: Where containerd keeps images and containers by this configuration., type: str, returned: always}
"""

import os
import re

from ansible.module_utils.basic import AnsibleModule


def format_version(text: str) -> int:
    """Returns the `version = N` of a configuration, by default 1 as in containerd."""
    found = re.search(r"^version\s*=\s*(\d+)", text, re.MULTILINE)
    return int(found.group(1)) if found else 1


def root_of(text: str) -> str:
    """Returns the top-level `root` of a configuration, by default containerd's own."""
    top = re.split(r"^\s*\[", text, maxsplit=1, flags=re.MULTILINE)[0]
    found = re.search(r"""^root\s*=\s*["']([^"']+)["']""", top, re.MULTILINE)
    return found.group(1) if found else "/var/lib/containerd"


def read(path: str) -> str:
    """Returns the text of a file, or "" if it is missing."""
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as handle:
        return handle.read()


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "default": "/etc/containerd/config.toml"},
            "containerd": {"type": "path", "default": "/usr/local/bin/containerd"},
            "toolkit": {"type": "path", "default": "/etc/nvidia-container-runtime/config.toml"},
        },
        supports_check_mode=True,
    )
    path, containerd = module.params["path"], module.params["containerd"]
    text, toolkit = read(path), read(module.params["toolkit"])
    root = root_of(text)
    if not os.path.exists(containerd) and module.check_mode:
        # A plan for a machine that has no containerd yet: show the change as far as it can be known.
        known = max(format_version(text), 3)
        module.exit_json(changed=False, text=text, version=known, toolkit=toolkit, migrated=False, root=root, spec="{}")
    version = format_version(module.run_command([containerd, "config", "default"], check_rc=True)[1])
    migrated = bool(text.strip()) and format_version(text) < version
    if migrated:
        text = module.run_command([containerd, "--config", path, "config", "migrate"], check_rc=True)[1]
    spec = module.run_command([os.path.join(os.path.dirname(containerd), "ctr"), "oci", "spec"], check_rc=True)[1]
    module.exit_json(
        changed=False, text=text, version=version, toolkit=toolkit, migrated=migrated, root=root, spec=spec
    )


if __name__ == "__main__":
    main()
