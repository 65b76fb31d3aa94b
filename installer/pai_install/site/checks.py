"""Rules over more than one value: inside the layout, inside the settings, and between the files.

They read the documents tolerantly, so that they also find what is wrong beside an entry that is itself wrong.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from pai_install.site.document import Document, Entries, Items, Text
from pai_install.site.legacy import NO_EFFECT
from pai_install.site.problem import YamlPath
from pai_install.site.settings import Settings
from pai_install.site.validate import did_you_mean

MAX_CONTROL_PLANES = 5
_DOCKER_BRIDGE = ipaddress.IPv4Network("172.17.0.0/16")


@dataclass(frozen=True, slots=True)
class Draft:
    """What can be said of an entry of machine-list before it is known to be right."""

    path: YamlPath
    entry: Entries

    def text(self, key: str) -> str | None:
        """The value of `key` when it is text."""
        value = self.entry.get(key)
        return str(value) if isinstance(value, Text) else None

    def flag(self, key: str) -> bool:
        """Whether `key` is given and means true."""
        return (self.text(key) or "").strip().lower() in {"true", "yes", "on"}


def drafts(layout: Document) -> list[Draft]:
    """The entries of machine-list that are mappings, in order."""
    machines = layout.content.get("machine-list")
    if not isinstance(machines, Items):
        return []
    return [Draft(("machine-list", index), entry) for index, entry in enumerate(machines) if isinstance(entry, Entries)]


def check_layout(layout: Document, settings: Settings | None) -> None:
    """Unique names and addresses, known machine types, roles, a way to log in."""
    machines = drafts(layout)
    for key in ("hostname", "hostip"):
        _check_unique(layout, machines, key)
    _check_types(layout, machines)
    if machines:
        _check_control_planes(layout, machines)
        _check_workers(layout, machines)
    if layout.content.get("kubernetes") is not None:
        message = "has no effect; the addresses come from the control planes"
        layout.add(("kubernetes",), "site.no-effect", message, "remove it", severity="warning")
    if settings is not None and settings.password is None and settings.ssh_key_file_path is None:
        _check_login(layout, machines)


def _check_unique(layout: Document, machines: list[Draft], key: str) -> None:
    seen: dict[str, Draft] = {}
    for machine in machines:
        value = machine.text(key)
        if value is None:
            continue
        if value in seen:
            first = layout.mark((*seen[value].path, key)).line
            message = f"{value[:60]} is already used in line {first}"
            layout.add((*machine.path, key), f"site.duplicate-{key}", message, "every machine needs its own")
        else:
            seen[value] = machine


def _check_types(layout: Document, machines: list[Draft]) -> None:
    skus = layout.content.get("machine-sku")
    if not isinstance(skus, Entries):
        return
    used = set()
    for machine in machines:
        name = machine.text("machine-type")
        if name is not None and name not in skus:
            message = f"{name[:60]} is not in machine-sku"
            layout.add((*machine.path, "machine-type"), "site.unknown-sku", message, did_you_mean(name, skus))
        used.add(name)
    for name in skus:
        if name not in used:
            path = ("machine-sku", name)
            layout.add(path, "site.unused-sku", "is used by no machine", "remove it", severity="warning")


def _check_control_planes(layout: Document, machines: list[Draft]) -> None:
    masters = [machine for machine in machines if machine.flag("pai-master")]
    count = len(masters)
    if count == 0:
        remedy = 'give one machine pai-master: "true"'
        layout.add(("machine-list",), "site.no-control-plane", "no machine is a control plane", remedy)
    elif count % 2 == 0 or count > MAX_CONTROL_PLANES:
        message = f"{count} control planes: their votes need 1, 3 or 5"
        layout.add((*masters[-1].path, "pai-master"), "site.control-plane-count", message, "add one or remove one")
    elif all(machine.flag("absent") for machine in masters):
        path = (*masters[0].path, "absent")
        layout.add(path, "site.no-control-plane", "every control plane is absent", "at least one must be there")


def _check_workers(layout: Document, machines: list[Draft]) -> None:
    if not any(machine.flag("pai-worker") for machine in machines):
        remedy = 'give a machine pai-worker: "true"; a control plane may work, too'
        layout.add(("machine-list",), "site.no-worker", "no machine is a worker", remedy)
    for machine in machines:
        if not machine.flag("pai-master") and not machine.flag("pai-worker"):
            message = "is neither pai-master nor pai-worker: it stays outside the cluster"
            layout.add(machine.path, "site.no-role", message, 'give it pai-worker: "true"', severity="warning")


def _check_login(layout: Document, machines: list[Draft]) -> None:
    for machine in machines:
        ssh = machine.entry.get("ssh")
        if not isinstance(ssh, Entries) or not (ssh.get("key-file") or ssh.get("password-from")):
            message = "cannot be logged in to: config.yaml has neither password nor ssh_key_file_path"
            layout.add(machine.path, "site.no-login", message, "add one of them to config.yaml")
            return


def check_settings(config: Document, settings: Settings) -> None:
    """Settings that contradict each other, that need each other, and those without effect."""
    given = config.content
    for path, code, message, remedy in _contradictions(settings):
        config.add((path,), f"site.{code}", message, remedy)
    for key, why in NO_EFFECT.items():
        if given.get(key) is not None:
            config.add((key,), "site.no-effect", f"has no effect: {why}", "remove it", severity="warning")
    if given.get("docker_cache_htpasswd") is not None:
        message = "was silently ignored by OpenPAI; here it counts"
        config.add(("docker_cache_htpasswd",), "site.meaning", message, severity="warning")


def _contradictions(settings: Settings) -> Iterator[tuple[str, str, str, str]]:
    if settings.component_source == "mirror" and settings.component_mirror_url is None:
        yield "component_source", "missing", "mirror needs component_mirror_url", "add component_mirror_url"
    if settings.component_source == "bundle" and settings.component_bundle is None:
        yield "component_source", "missing", "bundle needs component_bundle", "add component_bundle: PATH"
    if settings.host_daemon_port_start >= settings.host_daemon_port_end:
        yield "host_daemon_port_start", "port-range", "is not below host_daemon_port_end", "swap them"
    if (settings.docker_registry_username is None) != (settings.docker_registry_password is None):
        given = "username" if settings.docker_registry_username is not None else "password"
        message = "docker_registry_username and docker_registry_password go together"
        yield f"docker_registry_{given}", "missing", message, "give both or neither"
    if settings.enable_docker_cache and settings.docker_cache_storage_backend == "azure":
        for key in ("docker_cache_azure_account_name", "docker_cache_azure_account_key"):
            if getattr(settings, key) is None:
                remedy = f"add {key}, or docker_cache_storage_backend: filesystem"
                yield "enable_docker_cache", "missing", f"a cache on Azure needs {key}", remedy


def check_networks(layout: Document, config: Document, settings: Settings) -> None:
    """Pod, service and machine networks that overlap, and pod networks too small for the machines."""
    pods = ipaddress.IPv4Network(settings.pod_cidr)
    services = ipaddress.IPv4Network(settings.service_cidr)
    if pods.overlaps(services):
        message = f"the pods' network {pods} and the services' network {services} overlap"
        path = "pod_cidr" if "pod_cidr" in config.content else "service_cidr"
        config.add((path,), "site.network-overlap", message, "choose two that do not")
    if services.prefixlen < 12:
        config.add(
            ("service_cidr",),
            "site.network-size",
            f"{services} is too large for services",
            "use /12 or smaller",
        )
    machines = drafts(layout)
    _check_pod_capacity(config, settings, pods, len(machines))
    for machine in machines:
        _check_address(layout, config, machine, {"pod_cidr": pods, "service_cidr": services})


def _check_pod_capacity(config: Document, settings: Settings, pods: ipaddress.IPv4Network, machines: int) -> None:
    bits = settings.pod_cidr_node_prefix - pods.prefixlen
    path = "pod_cidr_node_prefix" if "pod_cidr_node_prefix" in config.content else "pod_cidr"
    if not 0 <= bits <= 16:
        message = f"/{settings.pod_cidr_node_prefix} per machine does not fit into {pods}: 0 to 16 bits lie between"
        config.add((path,), "site.network-size", message, "change pod_cidr or pod_cidr_node_prefix")
    elif 2**bits < machines:
        message = f"{pods} has room for {2**bits} machines, the layout has {machines}"
        config.add((path,), "site.network-size", message, "choose a larger pod_cidr or a longer pod_cidr_node_prefix")


def _check_address(
    layout: Document, config: Document, machine: Draft, networks: dict[str, ipaddress.IPv4Network]
) -> None:
    try:
        address = ipaddress.IPv4Address(machine.text("hostip") or "")
    except ValueError:
        return
    path = (*machine.path, "hostip")
    for key, network in networks.items():
        if address in network:
            origin = "" if key in config.content else " (default)"
            message = f"{address} lies in {key} {network}{origin}"
            layout.add(path, "site.network-overlap", message, f"choose another {key} in config.yaml")
    if address in _DOCKER_BRIDGE:
        message = f"{address} lies in {_DOCKER_BRIDGE}, which Docker takes for its own bridge"
        layout.add(path, "site.docker-bridge", message, 'set "bip" in /etc/docker/daemon.json', severity="warning")
