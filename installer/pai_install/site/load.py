"""The three files of a folder -> a Site, or every problem in them at once."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pai_install.documents.document import Document
from pai_install.documents.parse import parse_document
from pai_install.documents.problem import Problem, SiteInvalid, printable
from pai_install.documents.reader import read_document
from pai_install.documents.validate import partly, validate
from pai_install.site.layout_file import LayoutFile, MachineEntry, SkuEntry
from pai_install.site.legacy import LEGACY_LAYOUT_KEYS, LEGACY_SETTINGS
from pai_install.site.model import Machine, MachineRole, Site, Sku, Ssh
from pai_install.site.rotations import read_rotations
from pai_install.site.rules.console import check_console
from pai_install.site.rules.contradictions import check_contradictions
from pai_install.site.rules.directory import check_directory
from pai_install.site.rules.groups import check_groups
from pai_install.site.rules.jobs import check_jobs
from pai_install.site.rules.layout import check_layout
from pai_install.site.rules.monitoring import check_monitoring
from pai_install.site.rules.network import check_networks
from pai_install.site.rules.registries import check_cache_port, check_registry, check_registry_settings
from pai_install.site.rules.scheduling.check import check_scheduling
from pai_install.site.rules.settings import check_login, check_settings
from pai_install.site.rules.storage_servers import check_storage_server
from pai_install.site.rules.storages import check_storages
from pai_install.site.rules.volumes import check_dynamic_volumes
from pai_install.site.services import Services, read_services
from pai_install.site.services.registries import RegistrySection
from pai_install.site.settings import Settings

LAYOUT, CONFIG, SERVICES = "layout.yaml", "config.yaml", "services-configuration.yaml"
# file, depth and section of keys of which runs tell the place, beside those of config.yaml
_PLACED = ((SERVICES, 2, "registry"), (SERVICES, 3, "storages"))


@dataclass(frozen=True, slots=True)
class LoadedSite:
    """A valid site, the warnings about it, and its files (by name, for the place of any key)."""

    site: Site
    problems: tuple[Problem, ...]
    sources: Mapping[str, Document]


@dataclass(frozen=True, slots=True)
class SiteReading:
    """All results for a folder, valid or not. `site` is None if it has errors."""

    site: Site | None
    problems: tuple[Problem, ...]
    sources: Mapping[str, Document]


def load_site(directory: Path, *, services: str | None = None, layout: str | None = None) -> LoadedSite:
    """Reads and checks the site in `directory`, and where the rotations of its storages stand.

    services, layout: texts to read in place of services-configuration.yaml and layout.yaml.

    Raises SiteInvalid with all errors of all files, PaiError for a file of the state folder that is none of ours.
    """
    reading = read_site(directory, services=services, layout=layout)
    if reading.site is None:
        raise SiteInvalid(reading.problems)
    site = reading.site.model_copy(update={"rotations": read_rotations(directory)})
    return LoadedSite(site, reading.problems, reading.sources)


def read_site(directory: Path, *, services: str | None = None, layout: str | None = None) -> SiteReading:
    """Reads and checks the site in `directory`. Never raises for an invalid site.

    services, layout: texts that replace services-configuration.yaml and layout.yaml.
    """
    with _no_collection():
        return _read_site(directory, services, layout)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without the collector, which would look through millions of values again and again that all stay."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read_site(directory: Path, services_text: str | None, layout_text: str | None) -> SiteReading:
    layout_source = _document(directory / LAYOUT, layout_text)
    config_source = read_document(directory / CONFIG)
    sources = {LAYOUT: layout_source, CONFIG: config_source}
    layout = validate(LayoutFile, layout_source, legacy=LEGACY_LAYOUT_KEYS)
    settings = validate(Settings, config_source, legacy=LEGACY_SETTINGS)
    # user is the one setting without a default. Without a stand-in, its absence would hide all other problems.
    usable = settings or partly(Settings, config_source, {"user": "nobody"})
    check_layout(layout_source)
    if usable is not None:
        check_settings(config_source, usable)
        if config_source.root is not None:  # what could not be read may well hold a login
            check_login(layout_source, config_source, usable)
        check_registry_settings(config_source, usable)
        check_networks(layout_source, config_source, usable)
    services = _services(directory, sources, services_text)
    if usable is not None and SERVICES in sources:
        check_contradictions(sources[SERVICES], services, usable)
        check_cache_port(sources[SERVICES], services, usable)
        check_registry(sources[SERVICES], services.registry or RegistrySection(), usable)
    if SERVICES in sources:
        # Without a readable layout no machine is known. Then no storage is told that its machine does not exist.
        names = frozenset(machine.hostname for machine in layout.machine_list) if layout is not None else None
        check_directory(sources[SERVICES], services)
        check_groups(sources[SERVICES], services)
        check_storages(sources[SERVICES], services.storages or (), names, usable)
        check_dynamic_volumes(sources[SERVICES], services, usable)
        check_jobs(sources[SERVICES], services)
        if layout is not None:
            check_storage_server(sources[SERVICES], services, layout.machine_list)
    site = _site(directory, layout, usable, services) if layout is not None and usable is not None else None
    if site is not None and SERVICES in sources:
        check_scheduling(sources[SERVICES], site)
        check_console(sources[SERVICES], site)
        check_monitoring(sources[SERVICES], site)
    problems = tuple(problem for source in sources.values() for problem in sorted(source.problems, key=_place))
    if site is None or settings is None or any(problem.is_error for problem in problems):
        return SiteReading(None, problems, sources)
    return SiteReading(site.model_copy(update={"places": dict(_places(sources))}), problems, sources)


def _places(sources: Mapping[str, Document]) -> Iterator[tuple[str, str]]:
    for name, document in sources.items():
        for path, mark in document.marks.items():
            if (name, len(path), *path[:1]) in _PLACED or (name, len(path)) == (CONFIG, 1):
                yield ".".join(map(str, path)), f"{document.file}:{mark.line}:{mark.column}"


def _place(problem: Problem) -> tuple[int, int]:
    return problem.line, problem.column


def _services(directory: Path, sources: dict[str, Document], text: str | None) -> Services:
    path = directory / SERVICES
    if text is None and not os.path.lexists(path):
        _report_other_spelling(path, sources)
        return Services()
    source = sources[SERVICES] = _document(path, text)
    return read_services(source)


def _document(path: Path, text: str | None) -> Document:
    """The file, or a text in its place."""
    if text is None:
        return read_document(path)
    source = Document(printable(str(path)), path.parent)
    # As in a file: an editor's byte order mark is no part of the first key.
    parse_document(text.removeprefix("\ufeff"), source)
    return source


def _report_other_spelling(path: Path, sources: dict[str, Document]) -> None:
    """Warns of a services-configuration.yml, which OpenPAI did not read either."""
    other = path.with_suffix(".yml")
    if os.path.lexists(other):
        source = sources[SERVICES] = Document(printable(str(path)), path.parent)
        message = f"does not exist, and {other.name} is not read"
        source.add((), "site.no-file", message, f"rename {other.name} to {path.name}", severity="warning")


def _site(directory: Path, layout: LayoutFile, settings: Settings, services: Services) -> Site:
    return Site(
        directory=directory.absolute(),
        skus={name: _sku(name, entry) for name, entry in layout.machine_sku.items()},
        machines=tuple(_machine(entry, settings) for entry in layout.machine_list),
        settings=settings,
        services=services,
    )


def _sku(name: str, entry: SkuEntry) -> Sku:
    device = entry.computing_device
    return Sku(
        name=name,
        mem_bytes=entry.mem,
        vcore=entry.cpu.vcore,
        resources={device.type: device.count} if device else {},
        device_model=device.model if device else "",
    )


def _roles(entry: MachineEntry) -> Iterator[MachineRole]:
    if entry.pai_master:
        yield "control-plane"
    if entry.pai_worker:
        yield "worker"
    if entry.pai_storage:
        yield "storage"


def _machine(entry: MachineEntry, settings: Settings) -> Machine:
    ssh = entry.ssh
    return Machine(
        hostname=entry.hostname,
        hostip=entry.hostip,
        sku=entry.machine_type,
        roles=frozenset(_roles(entry)),
        absent=entry.absent,
        ssh=Ssh(
            user=(ssh.user if ssh else None) or settings.user,
            port=ssh.port if ssh else 22,
            key_file=(ssh.key_file if ssh else None) or settings.ssh_key_file_path,
            password=(ssh.password_from if ssh else None) or settings.password,
        ),
        labels=entry.labels,
        taints=entry.taints,
        become=entry.become,
    )
