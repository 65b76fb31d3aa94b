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
    if site.services:
        yield f"services-configuration.yaml is checked only: {', '.join(sorted(site.services))}"
