"""What a site asks for and this version does not do yet: said, never silently dropped."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.site.model import Site


def pending(site: Site) -> tuple[str, ...]:
    """One sentence for each thing that was read and checked, but is not set up; empty when all of it is."""
    return tuple(_pending(site))


def _pending(site: Site) -> Iterator[str]:
    settings = site.settings
    if settings.enable_docker_cache:
        yield "the Docker cache (enable_docker_cache) is not set up by this version"
    if settings.docker_registry_username is not None:
        yield "machines do not log in to the registry (docker_registry_username) in this version"
    if settings.docker_iptables_enabled is not None:
        yield "docker_iptables_enabled is left alone: Docker keeps its own setting"
    if site.openpai_style and settings.enable_hived_scheduler:
        yield "HiveD and OpenPAI's services are not set up by this version: the cluster has Kubernetes' own scheduler"
    others = _devices(site)
    if others:
        yield f"no device plugin for {', '.join(others)} is set up by this version: Kubernetes does not offer them"
    if site.services:
        yield f"services-configuration.yaml is checked only: {', '.join(sorted(site.services))}"


def _devices(site: Site) -> tuple[str, ...]:
    """Types of devices that are not NVIDIA's, sorted: of machine types and of OpenPAI's section device-plugin."""
    types = {sku.device.type for sku in map(site.sku_of, site.present_machines) if sku.device is not None}
    section = site.services.get("device-plugin") or {}
    types |= {str(name) for name in section.get("devices") or ()}
    return tuple(sorted(name for name in types if not name.startswith("nvidia.com/")))
