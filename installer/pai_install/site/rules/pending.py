"""Requested features that this version does not support yet: reported, never silently dropped."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.site.console import has_console
from pai_install.site.field_metadata import not_yet, without_effect
from pai_install.site.model import Site


def pending(site: Site) -> tuple[str, ...]:
    """Returns one sentence for each setting that is valid but not set up, or ()."""
    return tuple(_pending(site))


def _pending(site: Site) -> Iterator[str]:
    yield from not_yet(site.settings)
    others = _devices(site)
    if others:
        yield f"no device plugin for {', '.join(others)} is set up by this version: Kubernetes does not offer them"
    yield from _file_server(site)
    yield from _console(site)
    yield from _monitoring(site)
    for why, sections in site.services.idle():
        yield f"{why} ({', '.join(sections)})"


def _file_server(site: Site) -> Iterator[str]:
    """Yields the settings of the section storage-manager without effect."""
    section = site.services.storage_manager
    if section is not None and not site.storage_servers:
        yield "nothing is served: no machine has pai-storage (storage-manager)"
    elif section is not None:
        yield from not_yet(section)


def _console(site: Site) -> Iterator[str]:
    """Yields what of OpenPAI's sections for its API and pages has no effect, or all of it without a console."""
    services = site.services
    sections = {"rest-server": services.rest_server, "webportal": services.webportal, "pylon": services.pylon}
    given = {name: section for name, section in sections.items() if section is not None}
    if given and not has_console(site):
        yield f"OpenPAI's API and pages are not installed ({', '.join(given)})"
        return
    reasons: dict[str, list[str]] = {}
    ssl = services.pylon.ssl if services.pylon is not None else None
    for name, section in (*given.items(), *((("pylon.ssl", ssl),) if ssl is not None else ())):
        for key, why in without_effect(type(section)).items():
            if key in section.given:
                reasons.setdefault(why, []).append(f"{name}.{key}")
    yield from (f"{why} ({', '.join(keys)})" for why, keys in reasons.items())


def _monitoring(site: Site) -> Iterator[str]:
    """Yields the sections of OpenPAI that need monitoring, where the site has none."""
    services = site.services
    named = [name for name in ("prometheus", "alert-manager", "node-exporter") if name in services.given]
    if services.monitoring is None and named:
        yield f"nothing is monitored without `monitoring: true` ({', '.join(named)})"


def _devices(site: Site) -> tuple[str, ...]:
    """Types of devices that are not NVIDIA's, sorted: of machine types and of OpenPAI's section device-plugin."""
    types = {name for machine in site.present_machines for name in site.sku_of(machine).resources}
    if site.services.device_plugin is not None:
        types.update(site.services.device_plugin.devices)
    return tuple(sorted(name for name in types if not name.startswith("nvidia.com/")))
