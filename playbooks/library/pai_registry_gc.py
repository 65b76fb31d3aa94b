#!/usr/bin/python
"""Ansible module: delete unused content of the cache now instead of at the scheduled time."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_registry_gc
short_description: Delete unused content of the registry cache
description:
  - Runs the program that the role docker_cache installed, by the rule that it was given there.
options:
  only_count: {description: Whether to report deletions without deleting., type: bool, default: false}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Drop what is unused
  pai_registry_gc:
"""
RETURN = r"""
findings: {description: One verdict., type: list, elements: dict, returned: always}
"""

import json
from typing import Dict

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_docker_cache_gc import REMEDY, REMEDY_OF_ROOM, CollectError, collect, dropped, room, size
from ansible.module_utils.pai_finding import own_finding


def collected(*, only_count: bool) -> Dict[str, str]:
    """Returns the finding, with the output of the garbage collector as evidence."""
    try:
        report = collect(check=only_count)
    except CollectError as error:
        message = "what is unused cannot be dropped from the cache"
        return own_finding("registry-content", "FAIL", message, value=str(error), remedy=REMEDY)
    words = {"value": room(report), "evidence": json.dumps(report)}
    if report["short"]:
        message = f"the cache: {dropped(report)}, and {size(report['short'])} over the limit cannot be deleted"
        return own_finding("registry-content", "WARN", message, remedy=REMEDY_OF_ROOM, **words)
    return own_finding("registry-content", "PASS", f"the cache: {dropped(report)}", **words)


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(argument_spec={"only_count": {"type": "bool", "default": False}}, supports_check_mode=True)
    findings = [] if module.check_mode else [collected(only_count=module.params["only_count"])]
    module.exit_json(changed=False, findings=findings)


if __name__ == "__main__":
    main()
