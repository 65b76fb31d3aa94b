"""The meaning of a site in values for people and programs, without secrets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from pai_install.documents.problem import printable
from pai_install.documents.quantity import format_bytes
from pai_install.site.model import MACHINE_ROLES, Machine, Site
from pai_install.site.schedulers import scheduler_of
from pai_install.site.services.registries import DOCKER_HUB, RegistrySection
from pai_install.site.settings import CONTAINERD_ROOT, Settings
from pai_install.system.words import plural

_HIDDEN = "********"


@dataclass(frozen=True, slots=True)
class Meaning:
    """One decision of the site. default: not in the site, but the default of pai-install or OpenPAI."""

    topic: str
    value: str
    default: bool


def site_json(site: Site) -> dict[str, Any]:
    """The `site` part of the JSON report."""
    return {
        "directory": str(site.directory),
        "machines": [_machine_json(site, machine) for machine in site.machines],
        "skus": {
            name: {
                "mem_bytes": sku.mem_bytes,
                "vcore": sku.vcore,
                "device": sku.device.model_dump() if sku.device else None,
            }
            for name, sku in site.skus.items()
        },
        "settings": {
            key: {"value": _open(getattr(site.settings, key)), "default": key not in site.settings.model_fields_set}
            for key in Settings.model_fields
        },
        "services": sorted(site.services.given),
    }


def _machine_json(site: Site, machine: Machine) -> dict[str, Any]:
    return {
        "hostname": machine.hostname,
        "hostip": machine.hostip,
        "roles": roles(machine),
        "sku": machine.sku,
        "devices": dict(site.skus[machine.sku].resources),
        "absent": machine.absent,
        "ssh": {
            "user": machine.ssh.user,
            "port": machine.ssh.port,
            "key_file": str(machine.ssh.key_file) if machine.ssh.key_file else None,
            "password": machine.ssh.password is not None,
        },
        "labels": dict(machine.labels),
        "taints": list(machine.taints),
        "become": machine.become,
    }


def _open(value: object) -> object:
    if isinstance(value, SecretStr):
        return _HIDDEN
    if isinstance(value, tuple):
        return [_open(item) for item in value]
    if isinstance(value, str):
        return printable(value)  # a proxy's address may hold a login
    return value if isinstance(value, int | float | bool | dict | None) else str(value)


def roles(machine: Machine) -> list[str]:
    """Returns the roles of a machine, in the order control-plane, worker, storage."""
    return [role for role in MACHINE_ROLES if role in machine.roles]


def headline(site: Site) -> str:
    """One sentence: how many of what."""
    devices: Counter[str] = Counter()
    for machine in site.present_machines:
        if machine.worker:
            devices.update(site.skus[machine.sku].resources)
    parts = [plural(len(site.control_planes), "control plane"), plural(len(site.workers), "worker")]
    parts += [plural(len(site.storage_servers), "storage server")] if site.storage_servers else []
    parts += [f"{count} x {kind}" for kind, count in sorted(devices.items())]
    absent = len(site.machines) - len(site.present_machines)
    parts += [f"{plural(absent, 'machine')} absent"] if absent else []
    return ", ".join(parts)


def machine_table(site: Site) -> Iterator[tuple[str, ...]]:
    """Yields the head and one row per machine: name, address, roles, type, its size, devices."""
    yield "machine", "address", "roles", "type", "memory", "cores", "devices"
    for machine in site.machines:
        sku = site.skus[machine.sku]
        does = ", ".join(roles(machine)) or "-"
        yield (
            machine.hostname,
            machine.hostip,
            f"{does} (absent)" if machine.absent else does,
            sku.name,
            format_bytes(sku.mem_bytes),
            str(sku.vcore),
            f"{sku.device.count} x {sku.device.model} ({sku.device.type})" if sku.device else "-",
        )


def meanings(site: Site) -> Iterator[Meaning]:
    """Yields the decisions of the settings, in the order of an installation."""
    settings = site.settings

    def meaning(topic: str, value: str, *keys: str) -> Meaning:
        return Meaning(topic, value, not settings.model_fields_set.intersection(keys))

    yield meaning("log in as", _login(site), "user")
    yield meaning("Kubernetes", settings.kubernetes_version, "kubernetes_version")
    yield meaning("components", _components(settings), "component_source")
    pods = f"{settings.pod_cidr}, /{settings.pod_cidr_node_prefix} per machine, flannel {settings.flannel_backend}"
    yield meaning("pods", pods, "pod_cidr", "pod_cidr_node_prefix", "flannel_backend")
    yield meaning("services", settings.service_cidr, "service_cidr")
    docker = f"{settings.docker_packages} packages, data in {settings.docker_data_root}"
    yield meaning("Docker", docker, "docker_packages", "docker_data_root")
    yield meaning("images of pods", settings.containerd_data_root or CONTAINERD_ROOT, "containerd_data_root")
    logs = f"{settings.docker_log_max_file} files of {settings.docker_log_max_size} per container"
    yield meaning("container logs", logs, "docker_log_max_size", "docker_log_max_file")
    runtime = settings.container_default_runtime or "decided per machine"
    yield meaning("default runtime", runtime, "container_default_runtime")
    cache = _cache(site)
    section = site.services.docker_cache
    if section is not None and section.enabled and not settings.enable_docker_cache:
        cache += "; enable_docker_cache in config.yaml rules, not docker-cache in services-configuration.yaml"
    yield meaning("Docker cache", cache, "enable_docker_cache")
    yield from _registries(site)
    yield from _lists(settings)
    yield meaning("time", ", ".join(settings.ntp_servers) or "the control planes' own clocks", "ntp_servers")
    for server in site.storage_servers:
        served = f"{server.hostname} serves {', '.join(site.services.file_server.exports)}"
        yield Meaning("storage server", served, default=not site.has_section("storage-manager"))
    if site.openpai_style:
        yield meaning("HiveD scheduler", _hived(site), "enable_hived_scheduler")
    if settings.docker_image_tag:
        yield meaning("OpenPAI site", settings.docker_image_tag, "docker_image_tag")
    if site.services.given:
        yield Meaning("sections", ", ".join(sorted(site.services.given)), default=False)


def _lists(settings: Settings) -> Iterator[Meaning]:
    named = {
        "registry mirrors": settings.openpai_docker_registry_mirrors,
        "insecure registries": settings.openpai_docker_insecure_registries,
        "proxy": tuple(url for url in (settings.http_proxy, settings.https_proxy) if url),
        "kubelet": (*settings.kubelet_config, *(f"--{flag}" for flag in settings.kubelet_custom_flags)),
    }
    for topic, values in named.items():
        if values:
            yield Meaning(topic, ", ".join(values), default=False)


def _hived(site: Site) -> str:
    if not site.settings.enable_hived_scheduler:
        return "off"
    return "on" if scheduler_of(site) == "hived" else "no: services-configuration.yaml names nothing that it divides"


def _login(site: Site) -> str:
    settings, means = site.settings, []
    key = settings.ssh_key_file_path
    if key is not None:
        means.append(f"key {key.relative_to(site.directory) if key.is_relative_to(site.directory) else key}")
    if settings.password is not None:
        means.append("password")
    return f"{settings.user}, with {' and '.join(means)}" if means else settings.user


def _components(settings: Settings) -> str:
    match settings.component_source:
        case "mirror":
            return f"mirror at {settings.component_mirror_url}"
        case "bundle":
            return f"bundle {settings.component_bundle}"
        case "modules":
            return "modules: built by the Go client"
        case _:
            return "upstream release addresses"


def _registries(site: Site) -> Iterator[Meaning]:
    """Mirrors of the site's own, and the registries that machines log in to."""
    section = site.services.registry or RegistrySection()
    mirrors = [f"{entry.name} at {entry.mirror}" for entry in section.upstreams if entry.mirror]
    if mirrors:
        yield Meaning("own mirrors", ", ".join(mirrors), default=False)
    if section.air_gapped:
        yield Meaning("air-gapped", "machines never ask an upstream themselves", default=False)
    logins = [entry.registry for entry in section.logins]
    if site.settings.docker_registry_username is not None:
        logins.insert(0, site.settings.docker_registry_domain)
    if logins:
        yield Meaning("logged in at", ", ".join(dict.fromkeys(logins)), default=False)


def _cache(site: Site) -> str:
    settings, section = site.settings, site.services.registry or RegistrySection()
    if not settings.enable_docker_cache:
        return "off"
    mirrored = {entry.name for entry in section.upstreams if entry.mirror}
    named = dict.fromkeys((DOCKER_HUB, *(entry.name for entry in section.upstreams)))
    served = [name for name in named if name not in mirrored]
    if not served:
        return "off: every registry has a mirror of the site's own"
    where = f"filesystem {settings.docker_cache_fs_mount_path}"
    if settings.docker_cache_storage_backend == "azure":
        account = settings.docker_cache_azure_account_name
        where = f"Azure account {account}, container {settings.docker_cache_azure_container_name}"
    return f"{', '.join(served)} kept in {where}"
