"""The Ansible inventory of a site: groups, connection and role variables, digests of the settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables
from pai_install.parts.registry import PARTS, system_namespaces, watched_units
from pai_install.plan.model import Inventory
from pai_install.site import Machine, Site

_ENCODER = json.JSONEncoder(sort_keys=True)
# Where a program is fetched from says nothing about the machine: the sum beside it does.
_PLACE, _SUM = "url", "sha256"
# What observe.yml asks every machine about.
WATCHED_UNITS = "pai_watched_units"
SYSTEM_NAMESPACES = "pai_system_namespaces"


def build_inventory(context: Context, digests: Mapping[str, str]) -> Inventory:
    """Returns the inventory of all present machines.

    digests: part -> digest of its files. A different digest is a changed setting. Variables with the same value on all
    machines appear once.
    """
    site = context.site
    makers = [_Maker(part, context, digests.get(part.name, "")) for part in PARTS]
    host_vars = {machine.hostname: _host_vars(machine, makers) for machine in site.present_machines}
    shared = {**_take_common(host_vars), **observed_by()}
    return Inventory(groups=groups(site), shared_vars=shared, host_vars=host_vars)


def combined(main: Inventory, others: Mapping[str, Inventory]) -> Inventory:
    """Returns an inventory in which some machines have the variables of another one. others: machine -> its other
    inventory.

    Their common variables are repeated for each machine, because others may differ.
    """
    own = {host: other.variables_of(host) for host, other in others.items()}
    for host, variables in own.items():
        variables["pai_settings"] = dict(others[host].settings_of(host))
    return replace(main, host_vars={**main.host_vars, **own})


def observed_by() -> dict[str, Any]:
    """The variables of observe.yml for every machine, beside the connection."""
    return {WATCHED_UNITS: list(watched_units()), SYSTEM_NAMESPACES: list(system_namespaces())}


class _Maker:
    """Makes a part's variables and their digests, once for all machines that are alike to it."""

    def __init__(self, part: Part, context: Context, digest: str) -> None:
        self.part = part
        self._context = context
        self._digest = digest
        self._made: dict[Hashable, tuple[dict[str, Any], dict[str, str]] | None] = {}

    def make(self, machine: Machine) -> tuple[dict[str, Any], dict[str, str]] | None:
        """Returns variables and digests, or None if the part does not apply or the machine does not need it."""
        if not self.part.applies(self._context.site, machine):
            return None
        key = self.part.alike(self._context.site, machine)
        if key not in self._made:
            model = self.part.variables(self._context, machine)
            made = None if model is None else (model.variables(), settings(self.part, model, self._digest))
            self._made[key] = made
        return self._made[key]


def _host_vars(machine: Machine, makers: list[_Maker]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    digests: dict[str, dict[str, str]] = {}
    for maker in makers:
        made = maker.make(machine)
        if made is not None:
            variables, digests[maker.part.name] = made
            for name, value in variables.items():  # several add-ons give entries of one list
                found[name] = [*found[name], *value] if name in found else value
    return {**connection(machine), **found, "pai_settings": digests}


def groups(site: Site) -> dict[str, tuple[str, ...]]:
    """Returns group -> host names. A machine is in every matching group."""
    nvidia = [machine for machine in site.present_machines if site.sku_of(machine).has_nvidia]
    members = {
        "control_plane": site.control_planes,
        "workers": site.workers,
        "nvidia": tuple(nvidia),
        "component_store": site.control_planes[:1],
        "storage_servers": site.storage_servers,
    }
    return {name: tuple(machine.hostname for machine in machines) for name, machines in members.items()}


# Ansible keeps what it found: the name of a version would be gone after an upgrade of the system, and the system's own
# is the one that has apt's library
_PYTHONS = ["/usr/bin/python3", *(f"python3.{minor}" for minor in range(14, 8, -1))]


def connection(machine: Machine) -> dict[str, Any]:
    """How Ansible reaches a machine."""
    words: dict[str, Any] = {
        "ansible_host": machine.hostip,
        "ansible_port": machine.ssh.port,
        "ansible_user": machine.ssh.user,
        "ansible_become": machine.become,
        "ansible_interpreter_python_fallback": _PYTHONS,
    }
    if machine.ssh.key_file is not None:
        words["ansible_ssh_private_key_file"] = str(machine.ssh.key_file)
    if machine.ssh.password is not None:
        secret = machine.ssh.password.get_secret_value()
        words |= {"ansible_password": secret, "ansible_become_password": secret}
    return words


def with_guests(inventory: Inventory, machines: Iterable[Machine]) -> Inventory:
    """Returns the inventory with connections to machines outside its groups. Existing machines stay unchanged."""
    others = {machine.hostname: connection(machine) for machine in machines}
    return replace(inventory, host_vars={**others, **inventory.host_vars}) if others else inventory


def settings(part: Part, variables: RoleVariables, role_digest: str) -> dict[str, str]:
    """Variable -> digest of its value, and `role` -> digest of the role itself."""
    left_out = part.not_settings | part.leader_variables
    digests = {
        name: digest(_without_places(value))
        for name, value in sorted(variables.settings().items())
        if name not in left_out
    }
    return {**digests, "role": role_digest}


def _without_places(value: Any) -> Any:  # noqa: ANN401 - any plain value
    if isinstance(value, dict):
        beside_a_sum = _SUM in value
        return {key: _without_places(kept) for key, kept in value.items() if not (beside_a_sum and key == _PLACE)}
    return [_without_places(entry) for entry in value] if isinstance(value, list) else value


def digest(value: object) -> str:
    """A short digest of a plain value."""
    return _digest_of(_ENCODER.encode(value))


@lru_cache(maxsize=4096)  # most settings of a thousand machines are the same
def _digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _take_common(host_vars: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Removes variables that all hosts share from `host_vars` and returns them."""
    hosts = list(host_vars.values())
    if len(hosts) < 2:
        return {}
    common = {
        name: value
        for name, value in hosts[0].items()
        # Alike machines share the value that one maker made. The identity spares a deep comparison.
        if all(name in other and (other[name] is value or other[name] == value) for other in hosts[1:])
    }
    for values in hosts:
        for name in common:
            del values[name]
    return common
