#!/usr/bin/python
"""Ansible module: record the state of a machine before the first change."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_origins
short_description: Record the packages of a machine before the first change
description:
  - Records the installed packages of a machine before the first role changes it.
  - Later modules add the first copy of each file of the admin's, and kernel parameters as they were.
  - pai_reset restores the recorded state, and removes no package from before.
options: {}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Remember what the machine has
  pai_origins:
"""
RETURN = r"""
begun: {description: Whether the notes begin with this run., type: bool, returned: always}
package_lists: {description: Whether apt has lists of packages., type: bool, returned: always}
"""

import glob

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_origins import begin, may_begin
from ansible.module_utils.pai_packages import installed

LISTS = "/var/lib/apt/lists/*_Packages*"


def main() -> None:
    """Runs the module. Notes change nothing that anything depends on: they count as no change."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    begins = may_begin()
    if begins and not module.check_mode:
        begin(installed())
    module.exit_json(changed=False, begun=begins, package_lists=bool(glob.glob(LISTS)))


if __name__ == "__main__":
    main()
