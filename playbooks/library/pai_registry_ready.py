#!/usr/bin/python
"""Ansible module: check that cache or store accept this machine's next requests, before a file changes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_registry_ready
short_description: Ask cache or component store with the address, authority and login that the machine is about to get
description:
  - Fails for a rejected login or an untrusted certificate. The machine keeps its working settings.
  - Fails, too, where it does not answer, but on a machine that has never used it.
  - A machine that has this authority, this address and this login already is not held up.
  - Changes nothing. Skipped in check mode.
options:
  what: {description: Name of the server in messages., type: str, default: the cache}
  url: {description: Its address., type: str, required: true}
  ca: {description: Authorities to trust (PEM)., type: str, required: true}
  auth_token: {description: "Base64 of NAME:PASSWORD, or empty.", type: str, default: ""}
  known: {description: File that is there on machines that use it., type: path, required: true}
  upstream: {description: Registry with the current login in its hosts.toml., type: str, required: true}
  timeout: {description: Seconds to wait for the new settings., type: int, default: 45}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Ask the cache
  pai_registry_ready:
    url: https://docker-cache.pai.internal:30500
    ca: "{{ registry_client_ca }}"
    known: /etc/pai-install/registry/ca.pem
    upstream: docker.io
"""
RETURN = r"""
answered: {description: Whether it answered., type: bool, returned: always}
"""

import os
import ssl
import time
from collections.abc import Callable
from typing import Optional

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_registry import (
    Client,
    Endpoint,
    RegistryError,
    RegistryUnreachableError,
    endpoint,
    only_these,
)


def wait(request: Callable[[], None], timeout: float) -> Optional[RegistryError]:
    """Polls until success or the timeout. Returns the last problem, or None."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            request()
        except RegistryError as error:
            if time.monotonic() > deadline:
                return error
            time.sleep(1)
        else:
            return None


def has(known: str, ca: str, upstream: str, url: str, authorization: str) -> bool:
    """Whether the machine uses this authority, this address and this login already."""
    try:
        with open(known, encoding="utf-8") as handle:
            place = endpoint(upstream)
            return handle.read() == ca and (place.url, place.authorization) == (url, authorization)
    except (OSError, ValueError, RegistryError):
        return False


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "what": {"type": "str", "default": "the cache"},
            "url": {"type": "str", "required": True},
            "ca": {"type": "str", "required": True},
            "auth_token": {"type": "str", "default": "", "no_log": True},
            "known": {"type": "path", "required": True},
            "upstream": {"type": "str", "required": True},
            "timeout": {"type": "int", "default": 45},
        },
        supports_check_mode=True,
    )
    given = module.params
    authorization = f"Basic {given['auth_token']}" if given["auth_token"] else ""
    if module.check_mode or has(given["known"], given["ca"], given["upstream"], given["url"], authorization):
        module.exit_json(changed=False, answered=False)
    try:
        context = only_these(given["ca"])
    except (ssl.SSLError, ValueError) as error:
        module.fail_json(msg=f"the authorities of {given['what']} cannot be used: {error}")
    client = Client(Endpoint(given["url"], (), authorization), "", context)
    used = os.path.exists(given["known"])
    # a machine that has never used it loses nothing by one that is not up yet
    wrong = wait(client.ping, given["timeout"] if used else 5)
    if isinstance(wrong, RegistryUnreachableError) and not used:
        module.exit_json(changed=False, answered=False)
    if wrong is not None:
        name, kept = given["what"], "The machine keeps what it has"
        module.fail_json(
            msg=f"{name} is not ready for what this machine is about to use: {wrong}. {kept}",
            remedy=f"run apply without --phase and --limit, which brings {name} up to date before the machines",
        )
    module.exit_json(changed=False, answered=True)


if __name__ == "__main__":
    main()
