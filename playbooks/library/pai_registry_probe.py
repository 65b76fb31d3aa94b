#!/usr/bin/python
"""Ansible module: are the site's registries there, and do they take its accounts? Asked before a change."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_registry_probe
short_description: Ask registries with the accounts and authorities that the site names for them
description:
  - Changes nothing, also in check mode.
  - Fails for a rejected account, an untrusted certificate, and a server that is not a registry.
  - An unreachable registry fails only with I(must_answer), because a cache starts without its upstream.
  - Fails, too, where Azure does not answer, refuses the account's key or has no such container.
options:
  registries:
    description: What to ask.
    type: list
    elements: dict
    required: true
    suboptions:
      name: {description: Name of the registry in the site., type: str, required: true}
      address: {description: Where it is reached., type: str, required: true}
      username: {description: Account., type: str, default: ""}
      password: {description: Password of that account., type: str, default: ""}
      ca: {description: PEM of whom to trust beside the system., type: str, default: ""}
      insecure: {description: "Whether any certificate will do, and no TLS, too.", type: bool, default: false}
      must_answer: {description: Whether it is an error that it does not answer., type: bool, default: false}
  azure:
    description: Azure storage of the cache's content.
    type: dict
    suboptions:
      account: {description: Storage account. Empty for none., type: str, default: ""}
      access_key: {description: Its key., type: str, default: ""}
      container: {description: Container., type: str, default: ""}
      endpoint: {description: "URL of the blob service. Empty for the service of Azure.", type: str, default: ""}
  places: {description: "Setting of the site -> FILE:LINE:COLUMN, for messages.", type: dict, default: {}}
  proxy: {description: "Proxy towards them: http, https, no_proxy.", type: dict, default: {}}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Ask the upstreams
  pai_registry_probe:
    registries: [{name: quay.io, address: "https://quay.io"}]
"""
RETURN = r"""
silent: {description: Names of unreachable registries., type: list, elements: str, returned: always}
"""

import concurrent.futures
from typing import Any, Optional

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_blob import AZURE_OPTIONS, use_proxy, wrong_account
from ansible.module_utils.pai_registry import RegistryError, RegistryUnreachableError, probe, probe_insecure


def verdict(entry: dict[str, Any]) -> Optional[RegistryError]:
    """Returns the problem of one registry, or None."""
    try:
        if entry["insecure"]:
            probe_insecure(entry["address"], entry["username"], entry["password"])
        else:
            probe(entry["address"], entry["username"], entry["password"], entry["ca"])
    except RegistryError as error:
        return error
    return None


def main() -> None:
    """Runs the module."""
    entry = {
        "name": {"type": "str", "required": True},
        "address": {"type": "str", "required": True},
        "username": {"type": "str", "default": ""},
        "password": {"type": "str", "default": "", "no_log": True},
        "ca": {"type": "str", "default": ""},
        "insecure": {"type": "bool", "default": False},
        "must_answer": {"type": "bool", "default": False},
    }
    registries = {"type": "list", "elements": "dict", "required": True, "options": entry}
    plain = {"type": "dict", "default": {}}
    azure = {"type": "dict", "options": AZURE_OPTIONS}
    given = {"registries": registries, "proxy": plain, "places": plain, "azure": azure}
    module = AnsibleModule(argument_spec=given, supports_check_mode=True)
    use_proxy(module.params["proxy"])  # this process asks no one else
    entries = module.params["registries"]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        found = list(zip(entries, pool.map(verdict, entries)))
    silent = [entry["name"] for entry, error in found if isinstance(error, RegistryUnreachableError)]
    wrong = [
        f"{entry['name']}: {error}"
        for entry, error in found
        if error and (entry["must_answer"] or not isinstance(error, RegistryUnreachableError))
    ]
    account = module.params["azure"] or {}
    if account.get("account") and (reason := wrong_account(account, module.params["places"])):
        wrong.append(reason)
    if wrong:
        module.fail_json(msg="; ".join(wrong), silent=silent)
    module.exit_json(changed=False, silent=silent)


if __name__ == "__main__":
    main()
