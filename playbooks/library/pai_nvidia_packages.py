#!/usr/bin/python
"""Ansible module: which packages, at which versions, are one NVIDIA driver."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_nvidia_packages
short_description: Choose the packages of an NVIDIA driver
description:
  - Returns the packages of a driver branch at their newest common version.
  - Reads the package lists of apt. Changes nothing.
options:
  branch: {description: First number of the driver's version., type: int, required: true}
  modules: {description: The kernel modules., type: str, choices: [open, proprietary], default: open}
  packages: {description: Whose packages., type: str, choices: [distribution, nvidia], default: distribution}
  os_id: {description: ID of /etc/os-release., type: str, required: true}
  fabric: {description: Whether the machine needs the fabric manager., type: bool, default: false}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Choose the packages
  pai_nvidia_packages: {branch: 580, os_id: ubuntu, fabric: true}
"""
RETURN = r"""
version: {description: The driver's version., type: str, returned: always}
packages: {description: "As apt takes them: NAME=VERSION.", type: list, elements: str, returned: always}
names: {description: The names alone., type: list, elements: str, returned: always}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_nvidia import DriverError, choose, parse_madison, wanted_packages


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "branch": {"type": "int", "required": True},
            "modules": {"type": "str", "choices": ["open", "proprietary"], "default": "open"},
            "packages": {"type": "str", "choices": ["distribution", "nvidia"], "default": "distribution"},
            "os_id": {"type": "str", "required": True},
            "fabric": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    driver = module.params
    try:
        wanted = wanted_packages(
            driver["os_id"], driver["branch"], driver["modules"], driver["packages"], fabric=driver["fabric"]
        )
        _status, listed, _errors = module.run_command(["apt-cache", "madison", *wanted])
        version, picked = choose(parse_madison(listed), wanted, driver["branch"])
    except DriverError as error:
        module.fail_json(
            msg=f"the NVIDIA driver {driver['branch']} ({driver['modules']} modules) cannot be installed: {error}; "
            "enable the package source that has it (Debian: non-free and contrib, Ubuntu: restricted and multiverse), "
            "choose a branch that is there, or write packages: nvidia in nvidia_driver of config.yaml"
        )
    packages = [f"{name}={picked[name]}" for name in wanted]
    module.exit_json(changed=False, version=version, packages=packages, names=list(wanted))


if __name__ == "__main__":
    main()
