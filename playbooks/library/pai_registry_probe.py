#!/usr/bin/python
"""Ansible module: are the site's registries there, and do they take its accounts? Asked before a change."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_registry_probe
short_description: Ask registries with the accounts and authorities that the site names for them
description:
  - Changes nothing, also in check mode.
  - Fails for an account that is refused, a certificate that the CA did not sign, and what is no registry.
  - A registry that does not answer fails only where I(must_answer) says so; a cache starts without its upstream.
options:
  registries:
    description: What to ask.
    type: list
    elements: dict
    required: true
    suboptions:
      name: {description: What the site calls it., type: str, required: true}
      url: {description: Its address., type: str, required: true}
      username: {description: Account., type: str, default: ""}
      password: {description: Password of that account., type: str, default: ""}
      ca: {description: PEM of whom to trust beside the system., type: str, default: ""}
      must_answer: {description: Whether it is an error that it does not answer., type: bool, default: false}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Ask the upstreams
  pai_registry_probe:
    registries: [{name: quay.io, url: "https://quay.io"}]
"""
RETURN = r"""
unreachable: {description: Names of those that did not answer., type: list, elements: str, returned: always}
"""

import concurrent.futures
from typing import Any, Optional

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_registry import RegistryError, RegistryUnreachableError, probe


def verdict(entry: dict[str, Any]) -> Optional[RegistryError]:
    """What is wrong with one registry; None where nothing is."""
    try:
        probe(entry["url"], entry["username"], entry["password"], entry["ca"])
    except RegistryError as error:
        return error
    return None


def main() -> None:
    """Runs the module."""
    entry = {
        "name": {"type": "str", "required": True},
        "url": {"type": "str", "required": True},
        "username": {"type": "str", "default": ""},
        "password": {"type": "str", "default": "", "no_log": True},
        "ca": {"type": "str", "default": ""},
        "must_answer": {"type": "bool", "default": False},
    }
    registries = {"type": "list", "elements": "dict", "required": True, "options": entry}
    module = AnsibleModule(argument_spec={"registries": registries}, supports_check_mode=True)
    entries = module.params["registries"]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        found = list(zip(entries, pool.map(verdict, entries)))
    silent = [entry["name"] for entry, error in found if isinstance(error, RegistryUnreachableError)]
    wrong = [
        f"{entry['name']}: {error}"
        for entry, error in found
        if error and (entry["must_answer"] or not isinstance(error, RegistryUnreachableError))
    ]
    if wrong:
        module.fail_json(msg="; ".join(wrong), unreachable=silent)
    module.exit_json(changed=False, unreachable=silent)


if __name__ == "__main__":
    main()
