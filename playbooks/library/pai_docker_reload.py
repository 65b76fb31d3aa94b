#!/usr/bin/python
"""Ansible module: apply Docker's configuration to a running dockerd by a reload, never by a restart."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_docker_reload
short_description: Reload Docker if its settings differ from daemon.json
description:
  - Compares live-restore, the mirrors and the insecure registries of a running dockerd (C(docker info)) with
    C(/etc/docker/daemon.json), reloads the unit where they differ, and waits until they are the same.
  - If they still differ, the task fails with the evidence and restores the files in I(rollback).
  - A stopped Docker and keys outside the file are not changed.
options:
  rollback: {description: "File -> its old copy. Empty if the file did not exist.", type: dict, default: {}}
  timeout: {description: Seconds until the settings must be in use., type: int, default: 30}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Reload Docker
  pai_docker_reload:
    rollback: "{{ __files.backups }}"
"""
RETURN = r"""
different: {description: What differed before., type: list, elements: str, returned: always}
"""

import ipaddress
import json
import time
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_machine import command
from ansible.module_utils.pai_managed import unit_state
from ansible.module_utils.pai_rollback import last_log_lines, roll_back
from ansible.module_utils.pai_running import daemon_settings

UNIT = "docker.service"
INFO_S = 20.0
# of the keys that SIGHUP applies (Daemon.Reload of moby, the same since Docker 1.12) those that we set. A reload that
# fails is a line in dockerd's log: systemctl and the unit are none the wiser. Of a key that is not in the file it
# keeps what it had, so such a key says nothing.
LIVE_RESTORE, MIRRORS, INSECURE = "live-restore", "registry-mirrors", "insecure-registries"
# dockerd adds these to any list
LOOPBACK = frozenset({"::1/128", "127.0.0.0/8"})


def registry(word: str) -> str:
    """An insecure registry as dockerd keeps it: a network, or a host without scheme."""
    word = word.split("://", 1)[-1]
    try:
        return str(ipaddress.ip_network(word, strict=False)) if "/" in word else word
    except ValueError:
        return word


def mirror(word: str) -> str:
    """A mirror as dockerd keeps it: it ends in a slash."""
    return word.rstrip("/") + "/"


def differences(file: Mapping[str, Any], info: Mapping[str, Any]) -> list[str]:
    """Returns a sentence per setting that differs in the daemon. file: daemon.json. info: `docker info`."""
    registries = info.get("RegistryConfig") or {}
    indexes = registries.get("IndexConfigs") or {}
    found = []
    if file.get(LIVE_RESTORE) and not info.get("LiveRestoreEnabled"):
        found.append(f"{LIVE_RESTORE} is off")
    if MIRRORS in file:
        wanted, used = list(dict.fromkeys(map(mirror, file[MIRRORS]))), registries.get("Mirrors") or []
        if wanted != used:
            found.append(f"{MIRRORS} are {', '.join(used) or 'none'} instead of {', '.join(wanted) or 'none'}")
    if INSECURE in file:
        hosts = [name for name, index in indexes.items() if not index.get("Secure")]
        # dockerd keeps networks and hosts in different lists of its answer.
        seen = {*hosts, *(registries.get("InsecureRegistryCIDRs") or [])} - LOOPBACK
        named = set(map(registry, file[INSECURE])) - LOOPBACK
        if named != seen:
            found.append(
                f"{INSECURE} are {', '.join(sorted(seen)) or 'none'} instead of {', '.join(sorted(named)) or 'none'}"
            )
    return found


class Docker:
    """The daemon of this machine."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module

    def differences(self) -> list[str]:
        """Returns the unapplied settings of its file, or one sentence if it does not respond."""
        status, out = command(["docker", "info", "--format", "{{json .}}"], timeout_s=INFO_S)
        try:
            info = json.loads(out) if status == 0 else None
        except ValueError:
            info = None
        if not isinstance(info, dict):
            return [f"docker info does not answer: status {status}"]
        return differences(daemon_settings(), info)

    def reload(self) -> None:
        """Reloads the daemon and waits. Fails the task if settings still differ after the timeout."""
        status, out, err = self.module.run_command(["systemctl", "reload", UNIT])
        left = self.left() if status == 0 else [(err or out).strip()]
        if not left:
            return
        restored = roll_back(self.module.params["rollback"])
        if restored:
            self.module.run_command(["systemctl", "reload", UNIT])
        words = f"; restored {', '.join(restored)}" if restored else ""
        self.module.fail_json(
            msg=f"{UNIT} did not apply its new settings on reload, and was not restarted{words}",
            evidence={"docker info": left, UNIT: last_log_lines(self.module, UNIT)},
        )

    def left(self) -> list[str]:
        """Returns [] as soon as no setting differs, or the differences after the timeout."""
        deadline = time.monotonic() + self.module.params["timeout"]
        while (left := self.differences()) and time.monotonic() < deadline:
            time.sleep(0.3)
        return left


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "rollback": {"type": "dict", "default": {}},
            "timeout": {"type": "int", "default": 30},
        },
        supports_check_mode=True,
    )
    docker = Docker(module)
    different = docker.differences() if unit_state(UNIT).get("ActiveState") == "active" else []
    if different and not module.check_mode:
        docker.reload()
    module.exit_json(changed=bool(different), different=different)


if __name__ == "__main__":
    main()
