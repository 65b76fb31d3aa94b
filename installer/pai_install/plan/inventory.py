"""The Ansible inventory of a site: groups, connection and role variables, digests of the settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pai_install.plan.desired import Desired
from pai_install.plan.lead import LED_BY
from pai_install.plan.model import Inventory
from pai_install.site import Machine, Site

# Where something lies on the dev box, or which control plane is asked, says nothing about the machines.
NOT_SETTINGS = {"control_plane_kubeconfig_dest", *LED_BY}
DEV_BOX_KEYS = {"path", "layout"}


def build_inventory(desired: Desired, role_digests: Mapping[str, str]) -> Inventory:
    """The inventory of all present machines.

    role_digests: role -> digest of its files; another version of a role counts as another setting.
    Variables that are the same on every machine are given once.
    """
    site = desired.site
    roles = desired.roles()
    distinct = {id(role): role for found in roles.values() for role in found}
    variables = {key: role.variables() for key, role in distinct.items()}
    digests = {key: settings(variables[key], role_digests.get(role.role, "")) for key, role in distinct.items()}
    host_vars: dict[str, dict[str, Any]] = {
        machine.hostname: {
            **connection(machine),
            **{name: value for role in roles[machine.hostname] for name, value in variables[id(role)].items()},
            "pai_settings": {role.role: digests[id(role)] for role in roles[machine.hostname]},
        }
        for machine in site.present_machines
    }
    shared = _take_common(host_vars)
    return Inventory(groups=groups(site), shared_vars=shared, host_vars=host_vars)


def groups(site: Site) -> dict[str, tuple[str, ...]]:
    """Group -> host names; a machine is in every group that applies."""
    nvidia = [machine for machine in site.present_machines if site.sku_of(machine).has_nvidia]
    members = {
        "control_plane": site.control_planes,
        "workers": site.workers,
        "nvidia": tuple(nvidia),
        "component_store": site.control_planes[:1],
    }
    return {name: tuple(machine.hostname for machine in machines) for name, machines in members.items()}


def connection(machine: Machine) -> dict[str, Any]:
    """How Ansible reaches a machine."""
    words: dict[str, Any] = {
        "ansible_host": machine.hostip,
        "ansible_port": machine.ssh.port,
        "ansible_user": machine.ssh.user,
        "ansible_become": machine.become,
    }
    if machine.ssh.key_file is not None:
        words["ansible_ssh_private_key_file"] = str(machine.ssh.key_file)
    if machine.ssh.password is not None:
        secret = machine.ssh.password.get_secret_value()
        words |= {"ansible_password": secret, "ansible_become_password": secret}
    return words


def settings(variables: Mapping[str, Any], role_digest: str) -> dict[str, str]:
    """Variable -> digest of its value, and `role` -> digest of the role itself."""
    digests = {
        name: digest(_without_places(value)) for name, value in sorted(variables.items()) if name not in NOT_SETTINGS
    }
    return {**digests, "role": role_digest}


def _without_places(value: Any) -> Any:  # noqa: ANN401 - any plain value
    if isinstance(value, dict):
        return {key: _without_places(entry) for key, entry in value.items() if key not in DEV_BOX_KEYS}
    return [_without_places(entry) for entry in value] if isinstance(value, list) else value


def digest(value: object) -> str:
    """A short digest of a plain value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def _take_common(host_vars: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Moves variables that all hosts share out of `host_vars`; returns them."""
    hosts = list(host_vars.values())
    if len(hosts) < 2:
        return {}
    common = {
        name: value
        for name, value in hosts[0].items()
        if all(name in other and (other[name] is value or other[name] == value) for other in hosts[1:])
    }
    for values in hosts:
        for name in common:
            del values[name]
    return common
